"""12.1  Count what a network learns."""

import math

from dlcourse.exercises.unit import solution, wrong

hints = """
- Go through the layers and carry the shape along: height, width, channels. A convolution changes the channels, pooling
  halves height and width, rounded down.
- A filter has a weight for each of k · k · channels numbers, and one bias. An affine layer has a weight from each input
  to each output, and a bias for each output.
- The first affine layer has height · width · channels inputs. The next one has as many inputs as the one before has
  units.
"""


@solution
def count_parameters(shape, layers):
    """shape: (height, width, channels) of a picture -> [numbers that each layer learns, …], 0 for pooling."""
    height, width, channels = shape
    inputs = None  # of the next affine layer; None before the first one
    counts = []
    for kind, *sizes in layers:
        if kind == "conv":
            filters, k = sizes
            counts.append((k * k * channels + 1) * filters)
            channels = filters  # padding keeps height and width
        elif kind == "pool":
            height, width = height // 2, width // 2
            counts.append(0)
        else:
            (units,) = sizes
            inputs = height * width * channels if inputs is None else inputs
            counts.append((inputs + 1) * units)
            inputs = units
    return counts


def _counts(shape, layers, *, bias=True, of_input=False, halved=2, channels=True):
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


@wrong
def no_bias(shape, layers):
    """The biases are missing: one for each filter of a convolution, one for each unit of an affine layer."""
    return _counts(shape, layers, bias=False)


@wrong
def bias_of_inputs(shape, layers):
    """In the affine layers you count one bias for each input. It is one for each output. The published table has the
    same slip, in two lines."""
    return _counts(shape, layers, of_input=True)


@wrong
def pool_forgotten(shape, layers):
    """Your affine layer sees the picture as if nobody had pooled. Each pooling halves height and width."""
    return _counts(shape, layers, halved=1)


@wrong
def one_channel(shape, layers):
    """Your convolutions look at one channel. A filter has k · k weights for *each* channel of its input."""
    return _counts(shape, layers, channels=False)


def rounded_up(shape, layers):
    pools = sum(kind == "pool" for kind, *_ in layers)
    height, width, depth = shape
    for _ in range(pools):
        height, width = math.ceil(height / 2), math.ceil(width / 2)
    return _counts((height << pools, width << pools, depth), layers)


@wrong
def bias_of_inputs_everywhere(shape, layers):
    """You count one bias for each input, in the convolutions too. A bias is added to an output: one for each filter, one
    for each unit."""
    counts = _counts(shape, layers, bias=False)
    depth, biased = shape[2], []
    for (kind, *sizes), count in zip(layers, counts, strict=True):
        biased.append(count + (count // sizes[0] if sizes else 0))
        depth = sizes[0] if kind == "conv" else depth
    return biased


@wrong
def one_side_of_the_window(shape, layers):
    """You count one side of the window, k. A filter has a weight for each cell: k · k."""
    return _counts(
        shape,
        [(kind, *sizes[:-1], math.sqrt(sizes[-1])) if kind == "conv" else (kind, *sizes) for kind, *sizes in layers],
    )


def picture_for_every_affine(shape, layers):
    counts, units = count_parameters(shape, layers), [sizes[0] for kind, *sizes in layers if kind == "affine"]
    first = len(counts) - len(units)
    return counts[:first] + [counts[first] // units[0] * n for n in units]


also_wrong = (
    rounded_up,
    lambda shape, layers: sum(count_parameters(shape, layers)),
    lambda shape, layers: [n for n in count_parameters(shape, layers) if n],
    picture_for_every_affine,
)


def inputs(rng):
    yield "one convolution of 3 × 3 with 32 filters on colour", ((32, 32, 3), [("conv", 32, 3)])
    yield "one affine layer on pictures of 4 × 4", ((4, 4, 1), [("affine", 10)])
    yield "a convolution of 5 × 5, pooling, an affine layer", ((8, 6, 3), [("conv", 4, 5), ("pool",), ("affine", 7)])
    chain = [("conv", 8, 3), ("pool",), ("conv", 16, 3), ("pool",), ("affine", 10)]
    yield "28, 14, 7 …: the second pooling of 28 × 28 fits", ((28, 28, 1), chain)
    yield "7 × 7: pooling leaves the last row and column out", ((7, 7, 2), chain)
    convolutions = [("conv", 32, 3), ("conv", 32, 3), ("pool",), ("conv", 64, 3), ("conv", 64, 3), ("pool",)]
    yield "the network of the story", ((32, 32, 3), [*convolutions, ("affine", 512), ("affine", 10)])
