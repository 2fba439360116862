"""Exercises of notebook 04: activations and losses."""

import numpy as np

from dlcourse.exercises import nb04_answers as a
from dlcourse.exercises.exercise import Exercise, Wrong

EXERCISES = [
    Exercise(
        id="04.1",
        title="The backward pass of tanh",
        reference=a.tanh_backward,
        inputs=a.tanh_inputs,
        hints=(
            "The slope of tanh is 1 − tanh(x)². You do not have x. Which part of the formula do you have?",
            "The slope is 1 − y². The chain rule multiplies it with what comes in from above.",
            "dx = dy · (1 − y · y). Begin with dx = y * y and change it in place: then there is no other array.",
        ),
        wrong=(
            Wrong(
                lambda dy, y: dy * (1 - np.tanh(y) ** 2),
                "You take tanh of y. But y is tanh(x) already, so the slope is 1 − y².",
            ),
            Wrong(lambda dy, y: 1 - y * y, "You return the slope alone. Backward multiplies it with dy."),
            Wrong(
                lambda dy, y: dy * (1 - y),
                "Your slope is 1 − y; the square is missing. At y = −1 tanh is flat, so there the slope has to be 0.",
            ),
            Wrong(
                lambda dy, y: dy * y * (1 - y),
                "y (1 − y) is the slope of the sigmoid. tanh goes from −1 to 1 and has the slope 1 − y².",
            ),
        ),
        big=a.two_arrays,
        costs=((1.5, "you make a second array beside dx. y * y can become dx, changed in place"),),
    ),
    Exercise(
        id="04.2",
        title="A softmax that survives",
        reference=a.softmax,
        inputs=a.softmax_inputs,
        hints=(
            "exp(1000) is too large for any float. What may you subtract from a row without changing its softmax?",
            "Subtract from each row its own maximum. keepdims=True keeps the axis, so that the shapes fit.",
            "The classes are on the last axis: axis=-1 finds it, whatever the number of axes.",
            "y = logits - logits.max(axis=-1, keepdims=True); then np.exp(y, out=y); then divide y by its sum over axis -1.",
        ),
        wrong=(
            Wrong(
                lambda logits: a.shifted_by(logits, 0.0),
                "Your formula is right on paper. But exp(1000) is infinite in a float, and infinite / infinite is NaN. "
                "Subtract the maximum of each row before exp.",
            ),
            Wrong(
                lambda logits: a.shifted_by(logits, logits.max()),
                "One maximum of the whole batch is too large for a low row: 0 / 0 is NaN. Each row needs its own.",
            ),
            Wrong(
                a.one_sum,
                "You divide by the sum over the whole batch. Each row has to sum to 1: sum along the last axis.",
            ),
            Wrong(
                lambda logits: a.along(logits, 0),
                "Your columns sum to 1, as if samples competed. The classes are on the last axis: axis=-1.",
            ),
            Wrong(
                lambda logits: a.along(logits, 1),
                "axis=1 holds the classes only where there are two axes. axis=-1 is the last, whatever their number.",
            ),
            Wrong(
                lambda logits: a.without_keepdims(logits, of_max=True, of_sum=False),
                "In the maximum you left out keepdims=True. It has lost its last axis, and broadcasting sets it beside the "
                "columns and not beside the rows. In a square batch the shapes fit, and each row gets another's maximum.",
            ),
            Wrong(
                lambda logits: a.without_keepdims(logits, of_max=False, of_sum=True),
                "In the sum you left out keepdims=True. It has lost its last axis, and broadcasting sets it beside the "
                "columns and not beside the rows. In a square batch the shapes fit, and each row gets another's sum.",
            ),
            Wrong(
                lambda logits: a.without_keepdims(logits, of_max=True, of_sum=True),
                "You left out keepdims=True, in the maximum and in the sum. Both have lost their last axis, and broadcasting "
                "sets them beside the columns and not beside the rows.",
            ),
            Wrong(
                lambda logits: a.softmax(logits.astype(np.float64)),
                "The numbers are right, but float64 where the scores were float32: twice the bytes in all that follows.",
            ),
        ),
        big=lambda rng: (rng.standard_normal((512, 1024), dtype=np.float32),),
        costs=(
            (2.5, "you hold the shifted scores, their exp and the result at once. Work on in one array"),
            (1.5, "you hold two arrays of this size at once. Work on in one: np.exp(y, out=y), then y /= …"),
        ),
    ),
    Exercise(
        id="04.3",
        title="Cross-entropy and its gradient, in one",
        reference=a.cross_entropy,
        inputs=a.entropy_inputs,
        hints=(
            "The loss of a sample is log(sum of exp(z)) − z[label], where z is its row less the row's maximum.",
            "z[np.arange(N), labels] takes the score of its label from each row.",
            "The gradient is softmax(z), less 1 in the place of the label, all divided by N: the loss is a mean.",
            "right = z[rows, labels]; np.exp(z, out=z); s = z.sum(axis=1, keepdims=True); loss: mean of log(s[:, 0]) − right.",
        ),
        wrong=(
            Wrong(
                lambda logits, labels: a.scaled(logits, labels, len(labels), len(labels)),
                "Your loss and your gradient are sums over the batch. The loss is a mean: divide both by N.",
            ),
            Wrong(
                lambda logits, labels: a.scaled(logits, labels, 1, len(labels)),
                "Your loss is right. Your gradient is N times too large, that of a sum over the batch: divide it by N.",
            ),
            Wrong(
                lambda logits, labels: a.scaled(logits, labels, 1, 1 / logits.shape[1]),
                "Your gradient is divided by N · K. The loss is a mean of N losses, one a sample: divide by N.",
            ),
            Wrong(
                lambda logits, labels: a.log_of_p(logits, labels, 1e-12),
                "You keep the probability away from 0 before the log. So no loss is above 27.6, and for [1000, 0, −1000] "
                "with label 1 it should be 1000. log(sum of exp) − score needs no such limit.",
            ),
            Wrong(
                lambda logits, labels: a.log_of_p(logits, labels, 0.0),
                "You take the log of the probability. For [1000, 0, −1000] with label 1 it was rounded to 0, and your loss "
                "is infinite; it should be 1000. Use log(sum of exp) − score.",
            ),
            Wrong(
                lambda logits, labels: a.log_of_p(logits, labels, 0.0, times_target=True),
                "You multiply log p by the target. Where p was rounded to 0 that is 0 · log 0, and this is NaN, even when "
                "the answer is right. Use log(sum of exp) − score.",
            ),
            Wrong(
                a.not_shifted,
                "exp(1000) is infinite, and NaN follows. Subtract each row's maximum: in the loss it drops out again.",
            ),
            Wrong(
                lambda logits, labels: a.scaled(logits, labels, 1, -1),
                "Your gradient has the wrong sign. In the place of the label it is p − 1, which is never above 0.",
            ),
            Wrong(
                a.one_not_divided,
                "You subtract 1 after dividing by N. It is (p − t)/N: subtract 1 first, then divide all of it.",
            ),
            Wrong(
                a.score_not_shifted,
                "In the loss you take the row's maximum from the scores in the logarithm, and not from the score of the "
                "label. Both belong to the same shifted scores, z.",
            ),
            Wrong(
                a.targets_in_float64,
                "The numbers are right, but the gradient is float64 where the scores were float32: np.eye makes float64, and "
                "the larger kind wins. Subtract 1 in place at the labels instead; that needs no array of targets at all.",
            ),
            Wrong(
                a.whole_columns,
                "p[:, labels] takes whole columns, in all rows. You need one place in each row: p[np.arange(N), labels].",
            ),
        ),
        big=a.entropy_big,
        costs=(
            (2.5, "you hold three arrays of this size or more at once: z, exp(z), p. One is enough: work on in z"),
            (
                1.5,
                "you hold two arrays of this size at once. Take the scores of the labels out first, then work on in z",
            ),
        ),
        parts=("loss", "dlogits"),
        rtol=1e-5,  # a loss in float32 depends on the order of its sums
    ),
    Exercise(
        id="04.4",
        title="Backward from one bit a number",
        reference=a.relu_backward_from_bits,
        inputs=a.bits_inputs,
        hints=(
            "np.unpackbits gives eight bytes, 0 or 1, for each byte of bits. They stand in one row.",
            "10 numbers take 2 bytes, and these give 16. The argument `count` says how many are wanted.",
            "np.unpackbits(bits, count=dy.size).reshape(dy.shape) is a mask in bytes. Multiply dy by it.",
        ),
        wrong=(
            Wrong(
                lambda dy, bits: dy * np.unpackbits(bits).reshape(dy.shape),
                "The last byte was filled up with zeros that belong to no number. Give np.unpackbits a count.",
            ),
            Wrong(
                lambda dy, bits: dy * a.unpacked(dy, bits, bitorder="little"),
                "You read each byte from the other end. np.packbits begins with the highest bit, bitorder='big'.",
            ),
            Wrong(
                lambda dy, bits: dy * (bits.reshape(dy.shape) > 0),
                "You take each byte for one number. A byte stands for eight: np.unpackbits takes them apart.",
            ),
            Wrong(
                lambda dy, bits: dy * a.unpacked(dy, bits).astype(np.float64),
                "The numbers are right, but dx is float64 where dy was float32. A mask in bytes leaves dy's dtype.",
            ),
            Wrong(lambda dy, bits: a.unpacked(dy, bits).astype(dy.dtype), "You return the mask. Multiply it with dy."),
            Wrong(
                lambda dy, bits: dy * (1 - a.unpacked(dy, bits)),
                "You keep dy where the bit is 0. A bit of 1 says that the number was above 0 and went through.",
            ),
        ),
        big=a.bits_big,
        costs=((1.5, "you turned the mask into float32, as large as dx. Multiply dy by the bytes"),),
    ),
    Exercise(
        id="04.5",
        title="GELU backward in two arrays",
        reference=a.gelu_backward,
        inputs=a.gelu_inputs,
        hints=(
            "y = ½ x (1 + t) is a product, so its slope has two terms. In the second, t depends on x.",
            "The slope is ½ (1 + t) + ½ x (1 − t²) u′. First get this right, times dy; then count the arrays.",
            "(1 − t²) = (1 + t)(1 − t), so the slope is ½ (1 + t) (1 + x u′ (1 − t)). One array for t, one for dx.",
            "In place: dx becomes x u′. t −= 1 gives −(1 − t): multiply dx by it, subtract dx from 1. t += 2 gives 1 + t.",
        ),
        wrong=(
            Wrong(
                lambda dy, x: a.product_rule(dy, x, scale=0.0),
                "You have the first term, ½ (1 + t). But t depends on x too: the second term is ½ x (1 − t²) u′.",
            ),
            Wrong(
                lambda dy, x: a.product_rule(dy, x, inner=False, scale=1.0),
                "You left out the last factor of the chain rule: the slope of tanh(u) is (1 − t²) times u′.",
            ),
            Wrong(
                lambda dy, x: a.product_rule(dy, x, inner=False),
                "Your u′ is s alone. But u = s (x + c x³), and its slope is s (1 + 3 c x²).",
            ),
            Wrong(
                lambda dy, x: a.product_rule(dy, x, square=1),
                "You have 1 − t where the slope of tanh is 1 − t². At x = −1000 your slope is far from 0.",
            ),
            Wrong(lambda dy, x: a.product_rule(np.ones_like(x), x), "You return the slope alone. Multiply it with dy."),
            Wrong(
                lambda dy, x: a.gelu_backward(dy.astype(np.float64), x.astype(np.float64)),
                "The numbers are right, but dx is float64 where x was float32. np.sqrt(2 / np.pi) is a NumPy number in "
                "float64; math.sqrt gives a plain one, which takes the dtype of the array.",
            ),
        ),
        big=a.two_arrays,
        costs=(
            (1.75, "you hold four arrays of this size or more at once. Each name and each intermediate result is one"),
            (1.25, "you hold three arrays of this size at once. Two are enough: one for t, one for dx, in place"),
        ),
    ),
]
