"""12.2  What a chain of affine layers keeps."""

from dlcourse.exercises.unit import solution, wrong

hints = """
- Write down who keeps what, as in section 5. Then look for two names of the same array.
- Without dropout, the output of a ReLU is the input of the next affine layer: one array of 4 bytes a number. The
  pictures are data. The scores go to the loss, no layer keeps them.
- With dropout in between, ReLU keeps its output (4 bytes), dropout its mask (1 byte), and the affine layer its input,
  which is now another array (4 bytes): 9 bytes for each number.
"""


@solution
def saved_bytes(widths, batch, dropout):
    """Affine layers from widths[0] to widths[1] to …, a ReLU between each two (and a dropout behind it) -> bytes kept."""
    numbers = batch * sum(widths[1:-1])  # outputs of the ReLUs; the pictures are data, the scores nobody keeps
    if not dropout:
        return 4 * numbers  # the next affine layer keeps the same array
    return (4 + 1 + 4) * numbers  # ReLU's output, dropout's mask, the affine layer's input


@wrong
def each_layer_alone(widths, batch, dropout):
    """You count the output of a ReLU and the input of the affine layer behind it. Without dropout in between they are
    one array."""
    return batch * sum(widths[1:-1]) * (4 + 4 + dropout)


@wrong
def pictures_too(widths, batch, dropout):
    """The pictures are counted too. They are there anyway, and their kind is data."""
    return saved_bytes(widths, batch, dropout) + 4 * batch * widths[0]


@wrong
def inputs_alone(widths, batch, dropout):
    """You count the input of each affine layer, whatever stands between. The first one is the pictures, which are data;
    and a dropout keeps a mask and makes another array."""
    return 4 * batch * sum(widths[:-1])


@wrong
def shared_in_spite_of_dropout(widths, batch, dropout):
    """You let ReLU and the next affine layer share an array. With dropout in between, the affine layer gets the output
    of the dropout, and that is another array."""
    return batch * sum(widths[1:-1]) * (4 + dropout)


@wrong
def mask_forgotten(widths, batch, dropout):
    """The mask of the dropout is missing: one byte a number."""
    return batch * sum(widths[1:-1]) * (8 if dropout else 4)


@wrong
def dropout_costs_nothing(widths, batch, dropout):
    """A dropout makes no difference in your count. It keeps a mask, and its output is a new array, which the next affine
    layer keeps."""
    return 4 * batch * sum(widths[1:-1])


also_wrong = (
    lambda widths, batch, dropout: saved_bytes(widths, batch, dropout) + 4 * batch * widths[-1],
    lambda widths, batch, dropout: batch * sum(widths[1:-1]) * (12 if dropout else 4),
    lambda widths, batch, dropout: batch * sum(widths[1:-1]) * (3 if dropout else 1),
    lambda widths, batch, dropout: batch * sum(widths[1:-1]) * (13 if dropout else 8),
)


def inputs(rng):
    yield "3072 → 512 → 10, without dropout", ((3072, 512, 10), 100, False)
    yield "3072 → 512 → 10, with dropout", ((3072, 512, 10), 100, True)
    yield "one affine layer: only the pictures are needed", ((64, 10), 20, False)
    yield "four affine layers", ((20, 30, 40, 50, 2), 8, False)
    yield "four affine layers, with dropout", ((20, 30, 40, 50, 2), 8, True)
    yield "one sample", ((5, 3, 2), 1, True)
