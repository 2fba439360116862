"""00.2  What an affine layer costs as long as it is trained."""

from dlcourse.exercises.unit import solution, wrong

parts = "params", "grads", "slots"
hints = """
- Count numbers before bytes. How many weights are there, if there is one from each input to each output? And how many
  biases?
- Each parameter has one gradient, of the same size. Adam remembers two numbers for each parameter.
- `params = 4 * (inputs * outputs + outputs)`. The gradients take as much, the slots twice as much.
"""


@solution
def affine_bytes(inputs, outputs):
    """An affine layer in float32, trained by Adam -> bytes of its parameters, gradients and slots."""
    numbers = inputs * outputs + outputs  # a weight from each input to each output, and a bias for each output
    params = 4 * numbers
    return params, params, 2 * params  # one gradient and two slots for each parameter


@wrong
def no_bias(inputs, outputs):
    """The weights are counted, the biases are not. Each output has one number more, which is added to it."""
    params = 4 * inputs * outputs
    return params, params, 2 * params


@wrong
def bias_for_each_input(inputs, outputs):
    """You count one bias for each input. A bias is added to an output, so there is one for each output. A published
    table of the story's network has the same slip."""
    params = 4 * (inputs * outputs + inputs)
    return params, params, 2 * params


@wrong
def one_slot(inputs, outputs):
    """Adam remembers two numbers for each parameter, and you count one of them: its slots are twice the
    parameters."""
    params = 4 * (inputs * outputs + outputs)
    return params, params, params


@wrong
def added(inputs, outputs):
    """You add inputs and outputs. There is a weight from each input to each output: multiply them."""
    return tuple(4 * factor * (inputs + outputs) for factor in (1, 1, 2))


also_wrong = (
    lambda inputs, outputs: tuple(size // 4 for size in affine_bytes(inputs, outputs)),
    lambda inputs, outputs: tuple(size * 2 for size in affine_bytes(inputs, outputs)),
)


def inputs(rng):
    yield "3 inputs, 2 outputs", (3, 2)
    yield "affine_1 of this notebook", (128, 128)
    yield "affine_2 of this notebook", (128, 10)
    yield "1 input, 1 output", (1, 1)
    yield "the large layer of the story's network", (4096, 512)
