"""Exercises of notebook 12."""

import math
from collections.abc import Iterator

import numpy as np

from dlcourse.exercises.exercise import Exercise, Wrong

Shape = tuple[int, int, int]
Layers = list[tuple]  # ("conv", filters, size), ("pool",), ("affine", units)
Moment = tuple[str, dict[str, int], int, list[str]]  # name, {array made: bytes}, workspace, arrays freed after it
SLOTS = {"SGD": 0, "Momentum": 1, "Adam": 2}


def count_parameters(shape: Shape, layers: Layers) -> list[int]:
    return _counts(shape, layers)


def _counts(
    shape: Shape, layers: Layers, *, bias: bool = True, of_input: bool = False, halved: int = 2, channels: bool = True
) -> list[int]:
    height, width, depth = shape
    inputs, counts = None, []
    for kind, *sizes in layers:
        if kind == "conv":
            filters, k = sizes
            counts.append((k * k * (depth if channels else 1) + bias) * filters)
            depth = filters
        elif kind == "pool":
            height, width = height // halved, width // halved
            counts.append(0)
        else:
            inputs = height * width * depth if inputs is None else inputs
            biases = bias * (inputs if of_input else sizes[0])
            counts.append(inputs * sizes[0] + biases)
            inputs = sizes[0]
    return counts


def _no_bias(shape: Shape, layers: Layers) -> list[int]:
    return _counts(shape, layers, bias=False)


def _bias_of_inputs(shape: Shape, layers: Layers) -> list[int]:
    return _counts(shape, layers, of_input=True)


def _pool_forgotten(shape: Shape, layers: Layers) -> list[int]:
    return _counts(shape, layers, halved=1)


def _one_channel(shape: Shape, layers: Layers) -> list[int]:
    return _counts(shape, layers, channels=False)


def _rounded_up(shape: Shape, layers: Layers) -> list[int]:
    pools = sum(kind == "pool" for kind, *_ in layers)
    height, width, depth = shape
    for _ in range(pools):
        height, width = math.ceil(height / 2), math.ceil(width / 2)
    return _counts((height << pools, width << pools, depth), layers)


def _networks(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "one convolution of 3 × 3 with 32 filters on colour", ((32, 32, 3), [("conv", 32, 3)])
    yield "one affine layer on pictures of 4 × 4", ((4, 4, 1), [("affine", 10)])
    yield "a convolution of 5 × 5, pooling, an affine layer", ((8, 6, 3), [("conv", 4, 5), ("pool",), ("affine", 7)])
    chain = [("conv", 8, 3), ("pool",), ("conv", 16, 3), ("pool",), ("affine", 10)]
    yield "28, 14, 7 …: the second pooling of 28 × 28 fits", ((28, 28, 1), chain)
    yield "7 × 7: pooling leaves the last row and column out", ((7, 7, 2), chain)
    yield (
        "the network of the story",
        (
            (32, 32, 3),
            [
                *[("conv", 32, 3), ("conv", 32, 3), ("pool",), ("conv", 64, 3), ("conv", 64, 3), ("pool",)],
                *[("affine", 512), ("affine", 10)],
            ],
        ),
    )


def saved_bytes(widths: tuple[int, ...], batch: int, dropout: bool) -> int:
    return 4 * batch * sum(widths[1:-1]) + (5 * batch * sum(widths[1:-1]) if dropout else 0)


def _each_layer_alone(widths: tuple[int, ...], batch: int, dropout: bool) -> int:
    return batch * sum(widths[1:-1]) * (4 + 4 + dropout)


def _pictures_too(widths: tuple[int, ...], batch: int, dropout: bool) -> int:
    return saved_bytes(widths, batch, dropout) + 4 * batch * widths[0]


def _scores_too(widths: tuple[int, ...], batch: int, dropout: bool) -> int:
    return saved_bytes(widths, batch, dropout) + 4 * batch * widths[-1]


def _mask_of_floats(widths: tuple[int, ...], batch: int, dropout: bool) -> int:
    return batch * sum(widths[1:-1]) * (12 if dropout else 4)


def _shared_in_spite_of_dropout(widths: tuple[int, ...], batch: int, dropout: bool) -> int:
    return batch * sum(widths[1:-1]) * (4 + dropout)


def _numbers(widths: tuple[int, ...], batch: int, dropout: bool) -> int:
    return batch * sum(widths[1:-1]) * (3 if dropout else 1)


def _chains(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "3072 → 512 → 10, without dropout", ((3072, 512, 10), 100, False)
    yield "3072 → 512 → 10, with dropout", ((3072, 512, 10), 100, True)
    yield "one affine layer: only the pictures are needed", ((64, 10), 20, False)
    yield "four affine layers", ((20, 30, 40, 50, 2), 8, False)
    yield "four affine layers, with dropout", ((20, 30, 40, 50, 2), 8, True)
    yield "one sample", ((5, 3, 2), 1, True)


def peak_of_step(before: int, moments: list[Moment]) -> tuple[str, int]:
    return _highest(before, moments)


def _highest(
    before: int, moments: list[Moment], *, workspace: bool = True, freed_first: bool = False, freed: bool = True
) -> tuple[str, int]:
    alive: dict[str, int] = {}
    best = ("", -1)
    for name, made, own, gone in moments:
        alive |= made
        late = {array: size for array, size in alive.items() if freed and array in gone}
        alive = {array: size for array, size in alive.items() if array not in late}
        total = before + sum(alive.values()) + (0 if freed_first else sum(late.values())) + (own if workspace else 0)
        best = max(best, (name, total), key=lambda one: one[1])
    return best


def _sum_of_all(before: int, moments: list[Moment]) -> tuple[str, int]:
    name = _highest(before, moments)[0]
    return name, before + sum(sum(made.values()) + own for _, made, own, _ in moments)


def _no_workspace(before: int, moments: list[Moment]) -> tuple[str, int]:
    return _highest(before, moments, workspace=False)


def _freed_at_once(before: int, moments: list[Moment]) -> tuple[str, int]:
    return _highest(before, moments, freed_first=True)


def _never_freed(before: int, moments: list[Moment]) -> tuple[str, int]:
    return _highest(before, moments, freed=False)


def _from_zero(before: int, moments: list[Moment]) -> tuple[str, int]:
    return _highest(0, moments)


def _steps(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "one moment with workspace", (0, [("conv, forward", {"y": 400}, 250, [])])
    yield "an array is alive in the moment that frees it", (100, [("a", {"x": 50}, 0, []), ("b", {"y": 30}, 0, ["x"])])
    yield (
        "params 100, forward and backward of two layers",
        (
            100,
            [
                ("first, forward", {"h": 64}, 30, []),
                ("second, forward", {"y": 8}, 0, []),
                ("second, backward", {"dh": 64, "dW2": 40}, 20, ["h", "y"]),
                ("first, backward", {"dW1": 60}, 50, ["dh"]),
            ],
        ),
    )
    yield "the peak is at the start, in a large workspace", (10, [("a", {"x": 1}, 500, ["x"]), ("b", {"y": 90}, 0, [])])
    yield (
        "two moments that are equally high: the first one counts",
        (
            5,
            [("a", {"x": 20}, 10, ["x"]), ("b", {"y": 30}, 0, []), ("c", {}, 0, ["y"])],
        ),
    )
    yield "nothing is made", (77, [("update", {}, 0, [])])


def fixed_bytes(numbers: int, optimizer: str, itemsize: int, micro_batches: int) -> tuple[int, int, int]:
    size = numbers * itemsize
    return size, size * (2 if micro_batches > 1 else 1), size * SLOTS[optimizer]


def _one_sum_forgotten(numbers: int, optimizer: str, itemsize: int, micro_batches: int) -> tuple[int, int, int]:
    size = numbers * itemsize
    return size, size, size * SLOTS[optimizer]


def _a_set_for_each(numbers: int, optimizer: str, itemsize: int, micro_batches: int) -> tuple[int, int, int]:
    size = numbers * itemsize
    return size, size * micro_batches, size * SLOTS[optimizer]


def _divided(numbers: int, optimizer: str, itemsize: int, micro_batches: int) -> tuple[int, int, int]:
    size = numbers * itemsize
    return size, size // micro_batches, size * SLOTS[optimizer]


def _adam_once(numbers: int, optimizer: str, itemsize: int, micro_batches: int) -> tuple[int, int, int]:
    params, grads, slots = fixed_bytes(numbers, optimizer, itemsize, micro_batches)
    return params, grads, min(slots, params)


def _slots_of_float32(numbers: int, optimizer: str, itemsize: int, micro_batches: int) -> tuple[int, int, int]:
    params, grads, _ = fixed_bytes(numbers, optimizer, itemsize, micro_batches)
    return params, grads, 4 * numbers * SLOTS[optimizer]


def _always_adam(numbers: int, optimizer: str, itemsize: int, micro_batches: int) -> tuple[int, int, int]:
    return fixed_bytes(numbers, "Adam", itemsize, micro_batches)


def _settings(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "the story's network, Adam, float32, the batch at once", (2_168_362, "Adam", 4, 1)
    yield "the same in four micro-batches", (2_168_362, "Adam", 4, 4)
    yield "the same in two", (2_168_362, "Adam", 4, 2)
    yield "SGD remembers nothing", (1_000, "SGD", 4, 1)
    yield "momentum in float64, five micro-batches", (1_000, "Momentum", 8, 5)
    yield "Adam in float64", (10, "Adam", 8, 1)


EXERCISES = [
    Exercise(
        id="12.1",
        title="Count what a network learns",
        reference=count_parameters,
        inputs=_networks,
        hints=(
            (
                "Go through the layers and carry the shape along: height, width, channels. A convolution changes the "
                "channels, pooling halves height and width, rounded down."
            ),
            (
                "A filter has a weight for each of k · k · channels numbers, and one bias. An affine layer has a weight "
                "from each input to each output, and a bias for each output."
            ),
            (
                "The first affine layer has height · width · channels inputs. The next one has as many inputs as the one "
                "before has units."
            ),
        ),
        wrong=(
            Wrong(
                _no_bias,
                "The biases are missing: one for each filter of a convolution, one for each unit of an affine layer.",
            ),
            Wrong(
                _bias_of_inputs,
                "In the affine layers you count one bias for each input. It is one for each output. The published table "
                "has the same slip, in two lines.",
            ),
            Wrong(
                _pool_forgotten,
                "Your affine layer sees the picture as if nobody had pooled. Each pooling halves height and width.",
            ),
            Wrong(
                _one_channel,
                "Your convolutions look at one channel. A filter has k · k weights for *each* channel of its input.",
            ),
            Wrong(
                _rounded_up,
                "Where height or width is odd, you round up. A window of 2 × 2 that does not fit is left out: 7 becomes 3.",
            ),
        ),
    ),
    Exercise(
        id="12.2",
        title="What a chain of affine layers keeps",
        reference=saved_bytes,
        inputs=_chains,
        hints=(
            "Write down who keeps what, as in section 5. Then look for two names of the same array.",
            (
                "Without dropout, the output of a ReLU is the input of the next affine layer: one array of 4 bytes a number. "
                "The pictures are data. The scores go to the loss, no layer keeps them."
            ),
            (
                "With dropout in between, ReLU keeps its output (4 bytes), dropout its mask (1 byte), and the affine layer its "
                "input, which is now another array (4 bytes): 9 bytes for each number."
            ),
        ),
        wrong=(
            Wrong(
                _each_layer_alone,
                "You count the output of a ReLU and the input of the affine layer behind it. Without dropout in between "
                "they are one array.",
            ),
            Wrong(_pictures_too, "The pictures are counted too. They are there anyway, and their kind is data."),
            Wrong(
                _scores_too,
                "The scores are counted too. No layer needs its output here but a ReLU, and behind the last layer there "
                "is none.",
            ),
            Wrong(_mask_of_floats, "Your mask takes 4 bytes a number. Kept or not is one byte a number."),
            Wrong(
                _shared_in_spite_of_dropout,
                "You let ReLU and the next affine layer share an array. With dropout in between, the affine layer gets "
                "the output of the dropout, and that is another array.",
            ),
            Wrong(
                _numbers,
                "These are numbers and not bytes: 4 bytes for each number of an activation, 1 for each of a mask.",
            ),
        ),
    ),
    Exercise(
        id="12.3",
        title="The peak, from a table of moments",
        reference=peak_of_step,
        inputs=_steps,
        hints=(
            (
                "Keep a dictionary of what is alive. In each moment: put in what is made, look at the sum, then take out what "
                "is freed."
            ),
            (
                "The order matters. What a moment frees is still there while it works. And the workspace is there only while "
                "it works, so it never goes into the dictionary."
            ),
            (
                "`total = before + sum(alive.values()) + workspace`; keep it with its name where it is larger than the best "
                "so far; then `del alive[array]` for what is freed."
            ),
        ),
        wrong=(
            Wrong(
                _sum_of_all,
                "You add up everything that is ever made. Not all of it is alive at the same time: a peak is one moment.",
            ),
            Wrong(
                _no_workspace,
                "The workspace is missing. It is there only during the call, and that is just when the peak can be.",
            ),
            Wrong(
                _freed_at_once,
                "You free the arrays before you look. A layer still reads them while it works; they go when it is done.",
            ),
            Wrong(_never_freed, "Nothing is ever freed in your bill. Take out the arrays of the last column."),
            Wrong(
                _from_zero, "What was there before the step is missing: parameters and slots are alive all the time."
            ),
        ),
        parts=("moment", "bytes"),
    ),
    Exercise(
        id="12.4",
        title="The part that no batch changes",
        reference=fixed_bytes,
        inputs=_settings,
        hints=(
            "Three products. Only the middle one depends on the micro-batches, and it has only two cases.",
            (
                "With one micro-batch there is one set of gradients. With more there are two: the sum of the earlier ones, and "
                "those of the present one. Five micro-batches do not need six."
            ),
        ),
        wrong=(
            Wrong(
                _one_sum_forgotten,
                "With micro-batches there are two sets of gradients: the sum so far, and those that are being made.",
            ),
            Wrong(
                _a_set_for_each,
                "You keep a set of gradients for each micro-batch. Each is added to the sum and let go: two sets are "
                "enough, however many micro-batches there are.",
            ),
            Wrong(
                _divided,
                "Micro-batches divide what grows with the samples. A gradient has the shape of its parameter, whatever "
                "the batch.",
            ),
            Wrong(_adam_once, "Adam remembers two numbers for each parameter, you count one."),
            Wrong(
                _slots_of_float32,
                "Your slots are always float32. They have the dtype of the parameters, so their bytes per number too.",
            ),
            Wrong(
                _always_adam,
                "You count two slots for each optimizer. SGD remembers nothing, momentum one number for each parameter.",
            ),
        ),
        parts=("params", "grads", "slots"),
    ),
]
