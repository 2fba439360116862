"""Exercises of notebook 03: the chain rule, the affine layer backward, a check that can fail, the bytes of a stack."""

from dlcourse.exercises import nb03_answers as a
from dlcourse.exercises import nb03_checks as c
from dlcourse.exercises.exercise import Exercise, Wrong

EXERCISES = [
    Exercise(
        id="03.1",
        title="Two neurons, one after the other",
        reference=a.two_neurons_backward,
        inputs=a.numbers,
        hints=(
            "Compute z and y first, forward. Then go back from L: first dy, then what comes from it.",
            "dy = 2 (y - t). The second neuron is the neuron of the text, with z in the place of x: its dw2 is dy times z.",
            (
                "The second neuron also gives the gradient of its input: dz = dy · w2. For the first neuron dz is what dy was "
                "for the second."
            ),
        ),
        wrong=(
            Wrong(
                a.no_two,
                "All four are half of what they should be. The slope of (y - t)² is 2 (y - t): the 2 of the square "
                "comes down as a factor. Some books write ½ (y - t)² as the loss to be rid of it; this loss has no ½.",
            ),
            Wrong(
                a.wrong_sign,
                "All four have the wrong sign: dy is 2 (y - t), not 2 (t - y). When y is above t and grows, the loss "
                "grows too, so its slope is positive. With your sign a descent would climb.",
            ),
            Wrong(
                a.link_missing,
                "Your dw1 and db1 leave out one link of the chain. From dy to dz one passes the second neuron, "
                "y = w2 z + b2: when z moves by a step, y moves by w2 times as much.",
            ),
            Wrong(
                a.x_for_z,
                "Your dw2 is multiplied by x. But the second neuron does not see x: its input is z. A weight's "
                "gradient is dy times what stood beside that weight in the forward pass.",
            ),
            Wrong(
                a.z_for_w2,
                "Going back to z you multiply by z. That is the factor of w2. When z itself moves by a step, y moves by w2 "
                "times as much.",
            ),
            Wrong(
                a.neurons_exchanged,
                "All four numbers are right, and the two neurons are exchanged. The first neuron, dw1 and db1, comes first.",
            ),
            Wrong(
                a.bias_without_dy,
                "Your db2 is 1: that is how much y moves with b2. The slope of L is wanted. Multiply by dy.",
            ),
            Wrong(
                a.w1_for_w2,
                "Going back to z you multiply by w1, and it is w2 that stands between z and y. Write down y as a "
                "formula of z alone, and ask how much it moves with z.",
            ),
        ),
        parts=("dw1", "db1", "dw2", "db2"),
    ),
    Exercise(
        id="03.2",
        title="The backward pass of an affine layer",
        reference=a.affine_backward,
        inputs=a.batches,
        hints=(
            "Each of the three has the shape of what it is the gradient of. Write the shapes of dy, x and W on paper first.",
            (
                "In dW the sum goes over n, the samples. A matrix product sums over the axis that vanishes: which of the two "
                "must be transposed, so that n stands in the middle?"
            ),
            "dx[n, d] = Σ_k dy[n, k] W[d, k]. The sum is over the last axis of both; so W must be transposed.",
            "dx = dy @ W.T and dW = x.T @ dy; db is the sum of dy over the samples, axis 0.",
        ),
        wrong=(
            Wrong(
                a.mean,
                "Your dW and db are divided by N. The mean of the loss is in dy already: the loss divided by N once, and "
                "so did its gradient. A layer that divides again makes N times too small steps. Divide nowhere.",
            ),
            Wrong(
                a.mean_bias,
                "Your db is the mean over the batch. dW sums over the samples, and so must db: the same number b was "
                "added to each sample, and each sample's share counts. The 1/N of the loss is in dy already.",
            ),
            Wrong(
                a.dx_not_transposed,
                "Your dx is dy @ W. This fits only where D_in = D_out, and there it is wrong without an error. "
                "dx[n, d] is the sum over k of dy[n, k] · W[d, k]: k is the last index of W, so W must be transposed.",
            ),
            Wrong(
                a.dx_reshaped,
                "In dx you gave W another shape by reshape, where it must be transposed. reshape keeps the numbers in the "
                "order of the strip; .T exchanges rows and columns. The shapes fit, the numbers do not (see notebook 01).",
            ),
            Wrong(
                a.dW_transposed,
                "Your dW is transposed: it has the shape (D_out, D_in). A gradient has the shape of its array. With a "
                "square W no shape tells you; the numbers are wrong all the same.",
            ),
            Wrong(
                a.dW_reshaped,
                "In dW you gave x another shape by reshape, where it must be transposed. reshape keeps the numbers in the "
                "order of the strip, so samples and inputs are mixed. x.T exchanges the axes, and copies nothing.",
            ),
            Wrong(
                a.bias_keeps_axis,
                "The numbers of db are right, its shape is (1, D_out). Broadcasting would let b -= lr * db fail or, worse, "
                "make b a matrix. Sum over axis 0 without keepdims.",
            ),
            Wrong(
                a.bias_not_summed,
                "Your db is dy as it is, with a row for each sample. b was spread over the samples, so its gradient is "
                "summed back over them: axis 0 (notebook 01, section 8).",
            ),
            Wrong(
                a.bias_over_outputs,
                "Your db is summed over the outputs and has a number for each sample. There is one bias for each output: "
                "sum over the other axis, the samples.",
            ),
            Wrong(
                a.bias_one_number,
                "Your db is one number for the whole batch. Each output has a bias of its own; only the samples share it. "
                "Say along which axis the sum goes.",
            ),
            Wrong(
                a.float64,
                "The numbers are right, but with float32 coming in your gradients are float64: twice the bytes, and every "
                "array after them too. np.zeros(shape) and np.ones(shape) make float64; give them the dtype of what comes in.",
            ),
        ),
        big=a.large_batch,
        costs=(
            (
                8.0,
                "you built all products before summing them, an array of three axes; a matrix product sums on the way",
            ),
            (1.5, "a copy, or float64, was on the way; x.T and W.T are views, and a product needs no copy of them"),
        ),
        parts=("dx", "dW", "db"),
    ),
    Exercise(
        id="03.3",
        title="A check that can fail",
        reference=c.passes,
        inputs=c.checks,
        hints=(
            (
                "Three parts: the gradient that backward claims; the gradient by steps, with the loss (dy * f(x)).sum(); the "
                "largest relative error of the two. Convert x and dy to float64 before anything else."
            ),
            "For the steps: one entry at a time, in a fresh copy of x, up by 1e-5 and down by 1e-5, difference over 2e-5.",
            "NaN < 1e-6 is False, and NaN > 1e-6 is False too. So ask `error < 1e-6`, never `not error > 1e-6`.",
            (
                "size = np.maximum(abs(a), abs(n)); error = abs(a - n) / np.maximum(size, 0.001 * max(1, size.max())); then "
                "return bool(error.max() < 1e-6)."
            ),
        ),
        wrong=(
            Wrong(
                c.through_the_sum,
                "Your check does not use dy: it looks at f(x).sum(). A softmax sums to 1 whatever x is, so a backward that "
                "is 0 everywhere passes. Weight the outputs with dy, and hand the same dy to backward.",
            ),
            Wrong(
                c.mean_error,
                "You take the mean of the errors. One wrong entry among 400 disappears in it. Take the largest: a check "
                "has to fail if any entry is wrong.",
            ),
            Wrong(
                c.signed_error,
                "You take a - n without abs: an entry that is too small gives a negative error, and that is below every "
                "tolerance. Take the absolute value before the largest.",
            ),
            Wrong(
                c.not_a_number_passes,
                "NaN passes your check. Every comparison with NaN is False, so `not error > 1e-6` is True. Ask "
                "`error < 1e-6` and return that.",
            ),
            Wrong(
                c.in_float32,
                "Your check computes in the dtype that comes in. With float32 the differences are noise, and a right "
                "backward looks wrong. Convert x and dy to float64 first.",
            ),
            Wrong(
                c.one_side,
                "You step to one side only. The error is then about h times half the curvature: sin(20 x) looks wrong "
                "although its backward is right. Step up and down, and divide by 2 h.",
            ),
            Wrong(
                c.not_put_back,
                "You step one entry after the other in the same array and do not put it back: from the second entry on, "
                "x is no longer the x that backward got. Where an output depends on several entries, as in softmax, "
                "this shows. Copy x for each entry, or put the old value back.",
            ),
            Wrong(
                c.arguments_exchanged,
                "You hand x and dy to backward in the wrong order. It is backward(dy, x): dy first, as in affine_backward.",
            ),
            Wrong(
                c.absolute,
                "You compare the absolute error. A gradient of a million cannot agree to 1e-6: float64 has 16 digits, and "
                "the difference of two large numbers loses many of them. Divide by the size of the entry.",
            ),
            Wrong(
                c.zero_by_zero,
                "Where both gradients are 0 you divide 0 by 0, and that is NaN: a right backward fails. Divide by the "
                "larger of the two, but by no less than 0.001 times the largest of the array (at least 0.001).",
            ),
        ),
    ),
    Exercise(
        id="03.4",
        title="The bytes of a stack",
        reference=a.affine_bytes,
        inputs=a.stacks,
        hints=(
            "Go through the layers: widths [784, 512, 10] are two layers, 784 → 512 and 512 → 10.",
            "A layer has D_in · D_out weights and D_out biases. It keeps its input: batch · D_in numbers.",
            "The last output is the input of no layer of the stack: nobody keeps it. Multiply by itemsize at the end.",
        ),
        wrong=(
            Wrong(a.no_bias, "Your params have no biases: each layer has D_out of them, beside D_in · D_out weights."),
            Wrong(
                a.bias_of_inputs,
                "You gave each input a bias. A layer has one for each output: (D_in + 1) · D_out numbers. The published "
                "table of the story has the same fault (notebook 12): (10 + 1) · 512 where (512 + 1) · 10 is right.",
            ),
            Wrong(
                a.outputs,
                "Your saved bytes are those of the outputs. Backward needs x and not y (section 10): a layer keeps its input.",
            ),
            Wrong(
                a.without_the_batch,
                "You left out the batch itself. It is the input of the first layer, which keeps it for its dW.",
            ),
            Wrong(
                a.one_sample, "Your saved bytes are those of one sample. Each sample has its own: multiply by batch."
            ),
            Wrong(
                a.inputs_and_outputs,
                "Each layer keeps its input and its output in your count. Backward does not need the output; and one "
                "layer's output is the next one's input, so most arrays are counted twice.",
            ),
            Wrong(
                a.every_array_once,
                "You count each array once, which is right, but also the last output. It is the input of no layer of "
                "the stack, so nobody keeps it.",
            ),
            Wrong(
                a.a_copy_for_each_sample,
                "Your params grow with the batch. All samples are multiplied by the same W: the parameters exist once.",
            ),
            Wrong(a.numbers_not_bytes, "You count numbers. For bytes, multiply by itemsize, the bytes of one number."),
            Wrong(
                a.four_always,
                "You multiply by 4 always. That is right for float32; itemsize says what it is here (float64 has 8).",
            ),
        ),
        parts=("params", "saved"),
    ),
    Exercise(
        id="03.5",
        title="Any number of axes",
        reference=a.affine_backward_any,
        inputs=a.shapes_of_any_length,
        hints=(
            "All axes but the last are samples in the end. Lay them in one: x.reshape(-1, x.shape[-1]).",
            "dx needs no reshape: dy @ W.T works on the last axis, whatever stands before it.",
            "rows = x.reshape(-1, D_in), drows = dy.reshape(-1, D_out); then dW and db as in 03.2, from rows and drows.",
        ),
        wrong=(
            Wrong(
                a.for_two_axes,
                "This is the answer for two axes. With three, x.T turns all axes round, db keeps one axis too many, and "
                "shapes do not fit. Lay all axes but the last in one first.",
            ),
            Wrong(
                a.dW_of_each_sample,
                "Your dW has a matrix for each sample: the product sums over the steps only. The same W served all "
                "samples, so their matrices must be added.",
            ),
            Wrong(
                a.db_of_each_place,
                "Your db is summed over the first axis only. b was spread over every axis but the last; sum over all of "
                "them (notebook 01, section 8).",
            ),
            Wrong(
                a.dx_flat,
                "Your dx has the axes laid in one. A gradient has the shape of its array: dx that of x. Shape it back.",
            ),
            Wrong(
                a.rows_reshaped,
                "You wrote x.reshape(D_in, -1), which keeps the numbers in the order of the strip and mixes samples and "
                "inputs. First reshape to (-1, D_in), then transpose.",
            ),
        ),
        big=a.long_sequences,
        costs=((3.0, "you made dW for each sample before adding them; one product over all rows adds on the way"),),
        parts=("dx", "dW", "db"),
    ),
]
