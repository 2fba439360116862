"""Exercises of notebook 08: their hints, and what is said to each known mistake."""

import math
from itertools import pairwise

from dlcourse.exercises import nb08_answers as answers
from dlcourse.exercises.exercise import Exercise, Wrong

EXERCISES = [
    Exercise(
        id="08.1",
        title="Forward through all layers",
        reference=answers.forward_all,
        inputs=answers.forward_inputs,
        hints=(
            "One loop over layers.items(). What does the second layer get as its x?",
            "layer.forward(own, x, train=train) gives y and what the layer keeps. y is the x of the next layer.",
            "A ReLU has no entry in params: params.get(name, {}) gives an empty dictionary for it.",
            "Fill saved[name] = kept in the loop, and at the end return x, saved if train else None.",
        ),
        wrong=(
            Wrong(
                answers.keeps_inputs,
                "You keep the input of each layer. A ReLU keeps its output, a max pooling an index: each layer knows what "
                "its backward needs, and hands it out as the second thing that forward returns. Keep that.",
            ),
            Wrong(
                answers.keeps_always,
                "You keep arrays although train is False. Nobody will call backward then, so every array that is kept is "
                "memory for nothing: pass train on to the layers, and return None in place of saved.",
            ),
            Wrong(
                answers.all_have_parameters,
                "You look up params[name] for every layer. ReLU and Flatten have no parameters and no entry. "
                "params.get(name, {}) gives an empty dictionary for them.",
            ),
            Wrong(
                answers.not_handed_on,
                "Each of your layers gets the same x. A layer's x is what the layer before it gave: use the name x again "
                "for its output.",
            ),
            Wrong(
                answers.nones_for_nothing,
                "With train=False your saved is a dictionary of None. Nothing is kept, but it looks as if a backward could "
                "follow: return None in place of the dictionary.",
            ),
            Wrong(
                answers.forward_where_parameters_are,
                "You walk through params, so the layers without parameters, ReLU and Flatten, are passed over. Walk through "
                "layers, and look the parameters up.",
            ),
        ),
        big=answers.forward_big,
        costs=(
            (1.5, "you hold arrays of layers that are done, although train is False; use one name for what goes on"),
        ),
        parts=("y", "saved"),
    ),
    Exercise(
        id="08.2",
        title="Backward through all layers",
        reference=answers.backward_all,
        inputs=answers.backward_inputs,
        hints=(
            "Which layer's backward can run first, when all that you have is dy of the whole network?",
            "reversed(list(layers.items())) goes from the last layer to the first.",
            "dx of a layer is dy of the layer before it: dy, own = layer.backward(params.get(name, {}), saved[name], dy).",
            "Put own into grads[name] only where it is not empty, and return dy, grads at the end.",
        ),
        wrong=(
            Wrong(
                answers.from_first_to_last,
                "You go from the first layer to the last. dy is the gradient of the network's output, so only the last layer "
                "can use it. Its dx is dy for the layer before it: go through the layers in reverse.",
            ),
            Wrong(
                answers.same_dy_for_all,
                "Each of your layers gets the dy of the whole network. By the chain rule a layer's dy is the dx of the layer "
                "that follows it: use the name dy again for what backward returns.",
            ),
            Wrong(
                answers.with_empty_ones,
                "Your gradients have an empty entry for each layer without parameters. Optimizers walk through params and "
                "grads side by side, so both must have the same names: leave the empty ones out.",
            ),
            Wrong(
                answers.divided_by_samples,
                "Your gradients are divided by the number of samples. dy holds that 1/N already, since the loss is a mean. "
                "Divide nowhere.",
            ),
            Wrong(
                answers.takes_out,
                "You take the arrays out of saved. The notebook does this next, when the caller asks for it. Here nobody did, "
                "and saved belongs to the caller: look up saved[name].",
            ),
            Wrong(
                answers.backward_where_parameters_are,
                "You walk through params, so the layers without parameters are passed over. But dy has to go through a ReLU "
                "too: it sets a part of it to 0. Walk through layers, from the last to the first.",
            ),
        ),
        parts=("dx", "grads"),
    ),
    Exercise(
        id="08.3",
        title="The start of He",
        reference=answers.he_std,
        inputs=answers.weights,
        hints=(
            "fan_in is how many products are added up to make one output. How many is that for W of the shape (256, 10)?",
            "One output pixel of a convolution adds up kh · kw · C_in products: all axes of W but the last.",
            "The standard deviation is the square root of 2 / fan_in; math.prod(shape[:-1]) is fan_in.",
        ),
        wrong=(
            Wrong(
                lambda shape: 2 / math.prod(shape[:-1]),
                "This is the variance, 2 / fan_in. The standard deviation is its square root.",
            ),
            Wrong(
                lambda shape: math.sqrt(1 / math.prod(shape[:-1])),
                "You have 1 / fan_in. That keeps the size where all numbers pass. ReLU sets half of them to 0, and the 2 "
                "makes that good.",
            ),
            Wrong(
                lambda shape: math.sqrt(2 / shape[-2]),
                "For a convolution you count the channels only. One output adds up kh · kw · C_in products: the window "
                "belongs to fan_in. With 3 × 3 your numbers would grow by a factor of 3 in each layer.",
            ),
            Wrong(
                lambda shape: math.sqrt(2 / (math.prod(shape[:-2]) * shape[-1])),
                "You take fan_out, to how many outputs one input goes. That keeps the size of the gradients on the way back. "
                "The exercise asks for the way forward: how many products make one output.",
            ),
            Wrong(
                lambda shape: math.sqrt(2 / shape[-1]),
                "You divide by the last axis, the number of outputs. What matters is how many products are added up for one "
                "of them: all axes but the last.",
            ),
            Wrong(
                lambda shape: math.sqrt(2 / shape[0]),
                "You divide by the first axis. For (D_in, D_out) that is right, but for (kh, kw, C_in, C_out) it is the "
                "height of the window. Take the product of all axes but the last.",
            ),
            Wrong(
                lambda shape: math.sqrt(2 / (math.prod(shape[:-2]) * sum(shape[-2:]))),
                "This is the start of Glorot and Bengio, 2 / (fan_in + fan_out). It is made for tanh. He's counts fan_in only.",
            ),
            Wrong(
                lambda shape: math.sqrt(2 / math.prod(shape)),
                "You divide by the number of all weights. One output meets only a part of them: all axes but the last.",
            ),
        ),
    ),
    Exercise(
        id="08.4",
        title="What a chain keeps",
        reference=answers.saved_bytes,
        inputs=answers.chains,
        hints=(
            "An affine layer keeps its input. A ReLU keeps its output. Write down who keeps what for the widths 64, 128, 10.",
            "The output of a ReLU and the input of the affine layer after it are one array: count it once.",
            "Of the widths 64, 128, 10 two arrays are kept: x, with 64 numbers a sample, and the output of the ReLU, with 128.",
        ),
        wrong=(
            Wrong(
                lambda w, n, item: n * item * (w[0] + 2 * sum(w[1:-1])),
                "You count the arrays between two layers twice, once for the ReLU and once for the affine layer. Both keep "
                "the same array in memory. It has two names and one strip of bytes.",
            ),
            Wrong(
                lambda w, n, item: n * item * sum(w),
                "You count the output of the last affine layer too. Its backward needs its input and not its output, and no "
                "ReLU follows. The loss gets it, and it is not kept for backward.",
            ),
            Wrong(
                lambda w, n, item: n * item * sum(w[1:-1]),
                "You left out the input of the first layer. Its dW is x transposed times dy, so x has to stay until the very "
                "end of backward.",
            ),
            Wrong(
                lambda w, n, item: item * sum(w[:-1]),
                "This is what one sample keeps. A batch keeps as many times that as it has samples.",
            ),
            Wrong(
                lambda w, n, item: item * sum((d + 1) * u for d, u in pairwise(w)),
                "These are the bytes of the parameters. They do not depend on the batch. What is kept for backward are the "
                "arrays that go through the network.",
            ),
            Wrong(
                lambda w, n, item: n * sum(w[:-1]),
                "These are numbers, and not bytes: each takes itemsize bytes.",
            ),
            Wrong(
                lambda w, n, item: n * (item * sum(w[:-1]) + sum(w[1:-1])),
                "You add a mask of one byte a number for each ReLU. Ours keeps no mask: it keeps its output, and y > 0 is "
                "computed from that in backward.",
            ),
        ),
    ),
    Exercise(
        id="08.5",
        title="The auditor",
        reference=answers.count_all,
        inputs=answers.to_count,
        hints=(
            "Two things go along the chain: the shape, which layer.out_shape(shape) gives, and the name.",
            'hasattr(layer, "filters") finds a convolution, hasattr(layer, "units") an affine layer; all others have 0.',
            "A convolution has kh · kw · C weights for each filter and one bias for each filter. C is shape[-1].",
            "An affine layer has (shape[-1] + 1) · units. The 1 is the bias: one for each output.",
        ),
        wrong=(
            Wrong(
                lambda layers, shape: answers.counts_by(layers, shape, lambda kernel, c, out: kernel * c * (out + 1)),
                "You have a bias for each input. A bias is added to an output, so there are as many as there are outputs: "
                "(inputs + 1) · outputs, and not inputs · (outputs + 1).",
            ),
            Wrong(
                lambda layers, shape: answers.counts_by(layers, shape, lambda kernel, c, out: kernel * c * out),
                "You left out the bias: one number more for each filter or unit.",
            ),
            Wrong(
                lambda layers, shape: answers.counts_by(
                    layers, shape, lambda kernel, c, out: (math.isqrt(kernel) * c + 1) * out
                ),
                "You count one side of the window. A filter has a weight for each cell of it: height times width.",
            ),
            Wrong(
                lambda layers, shape: answers.counts_by(
                    layers, shape, lambda k, c, out: ((k if k > 1 else c) + 1) * out
                ),
                "Your filters have one window for all channels together. A filter has a window for each channel of its "
                "input: kh · kw · C weights.",
            ),
            Wrong(
                lambda layers, shape: answers.counts_by(layers, shape, answers.with_biases, follow=False),
                "You give each layer the shape of the network's input. A layer sees what the layer before it gives: "
                "shape = layer.out_shape(shape).",
            ),
            Wrong(
                answers.after_the_layer,
                "You count each layer with the shape of its own output. Its weights meet its input: count first, and take "
                "shape = layer.out_shape(shape) after that.",
            ),
            Wrong(
                answers.rows_for_channels,
                "You take the first axis of the shape for the channels. It is the height of the picture: a shape is "
                "(H, W, C), so the channels are shape[-1].",
            ),
            Wrong(
                lambda layers, shape: {name: n for name, n in answers.count_all(layers, shape).items() if n},
                "Layers without parameters are missing. An auditor lists every layer, with 0 where there is nothing to learn.",
            ),
        ),
    ),
]
