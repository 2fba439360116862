"""09.3  What a training holds between two steps."""

import math

from dlcourse.exercises.unit import solution, wrong

hints = (
    "Between two steps there are the parameters and the slots. Gradients are made anew in each step.",
    "The numbers of all arrays, times 4 bytes, times 1 + the copies that the optimizer holds.",
    "Copies: SGD 0; Momentum, Nesterov, AdaGrad, RMSprop 1; AdaDelta, Adam, AdamW 2. math.prod(shape) counts an array.",
)

COPIES = {"SGD": 0, "Momentum": 1, "Nesterov": 1, "AdaGrad": 1, "RMSprop": 1, "AdaDelta": 2, "Adam": 2, "AdamW": 2}


@solution
def held_bytes(shapes, optimizer):
    """shapes: a list of the parameters' shapes, float32; optimizer: its name -> bytes of parameters and slots."""
    return 4 * sum(math.prod(shape) for shape in shapes) * (1 + COPIES[optimizer])


@wrong
def with_gradients(shapes, optimizer):
    """You count the gradients, too. They are made in a step and let go in it; between two steps there are none."""
    return held_bytes(shapes, optimizer) + held_bytes(shapes, "SGD")


@wrong
def slots_alone(shapes, optimizer):
    """You count the slots alone. The parameters are held as well."""
    return held_bytes(shapes, optimizer) - held_bytes(shapes, "SGD")


@wrong
def one_slot_for_all(shapes, optimizer):
    """You take one slot for each optimizer that has any. AdaDelta, Adam and AdamW have two: an average of squares, and
    one more."""
    return held_bytes(shapes, "SGD" if optimizer == "SGD" else "Momentum")


@wrong
def adamw_has_three(shapes, optimizer):
    """AdamW's weight decay shrinks the parameter itself: it needs no array. AdamW has the two slots of Adam."""
    return held_bytes(shapes, optimizer) + (held_bytes(shapes, "SGD") if optimizer == "AdamW" else 0)


@wrong
def weights_alone(shapes, optimizer):
    """You leave out the biases. An optimizer has slots for every parameter, for a vector too."""
    return held_bytes([shape for shape in shapes if len(shape) > 1], optimizer)


def numbers(shapes, optimizer):
    return held_bytes(shapes, optimizer) // 4


def eight_bytes(shapes, optimizer):
    return 2 * held_bytes(shapes, optimizer)


def sums_of_shapes(shapes, optimizer):
    return 4 * sum(sum(shape) for shape in shapes) * (1 + COPIES[optimizer])


also_wrong = numbers, eight_bytes, sums_of_shapes


def inputs(rng):
    for name in COPIES:
        yield f"one matrix and its bias, {name}", ([(64, 10), (10,)], name)
    yield "a convolution", ([(3, 3, 3, 32), (32,)], "Adam")
    yield "a billion parameters", ([(32_000, 4096), *([(4096, 4096)] * 52), (4096,)], "AdamW")
    yield "no parameters", ([], "Adam")
