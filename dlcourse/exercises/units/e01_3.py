"""01.3  The backward pass of a product that is spread."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

parts = "dx", "db"
hints = """
- Move one number of x by h: by how much does its y move? By h times its b. Move one number of b by h: every y that used
  it moves by h times its x.
- So `dx` is `dy * b`, where b is spread as in the forward pass. And `dy * x` holds what each place says about b.
  Several places speak about the same number of b.
- What was spread is summed back: `db = sum_back(dy * x, b.shape)`, with the function of this section.
"""


@solution
def scale_backward(dy, x, b):
    """The backward pass of y = x * b.  dy and x have one shape, b is spread to it -> dx like x, db like b."""
    lengths = (1,) * (dy.ndim - b.ndim) + b.shape
    spread = tuple([axis for axis in range(dy.ndim) if lengths[axis] == 1])
    db = (dy * x).sum(axis=spread).reshape(b.shape)  # multiply first: each place has its own x
    return dy * b, db


def sum_back(dy, shape):
    lengths = (1,) * (dy.ndim - len(shape)) + shape
    axes = tuple([axis for axis in range(dy.ndim) if lengths[axis] == 1])
    return dy.sum(axis=axes).reshape(shape)


@wrong
def not_summed(dy, x, b):
    """Your db has the shape of dy. Each number of b was used at several places: sum what they say, over the axes along
    which b was spread."""
    return dy * b, dy * x


@wrong
def as_for_a_sum(dy, x, b):
    """This is the backward pass of x + b. In a product, a step of b moves y by the step times x, and a step of x moves
    y by the step times b."""
    return dy.copy(), sum_back(dy, b.shape)


@wrong
def first_axis_only(dy, x, b):
    """You sum over the first axis only. That is right for a b of the shape (D,) and samples in rows. The axes depend on
    the shape of b: `spread_axes` finds them."""
    return dy * b, (dy * x).sum(axis=0)


@wrong
def summed_too_early(dy, x, b):
    """You sum dy and x one by one and multiply the sums. Each place has its own product dy · x: multiply first, then
    sum."""
    return dy * b, sum_back(dy, b.shape) * sum_back(x, b.shape)


@wrong
def exchanged(dy, x, b):
    """x and b are exchanged. The slope of a product by one factor is the other one: dx has b in it, and db has x."""
    return dy * x, sum_back(dy * b, b.shape)


@wrong
def dx_of_x(dy, x, b):
    """Your dx has x in it. When x moves by a step, y moves by b times as much."""
    return dy * x, scale_backward(dy, x, b)[1]


also_wrong = (
    lambda dy, x, b: (dy * b, sum_back(dy * x, b.shape) * (b.size / dy.size)),
    lambda dy, x, b: (dy * b, (dy * x).sum(axis=tuple(range(dy.ndim - 1)))),
)


def inputs(rng):
    def draw(shape, of_b, dtype=np.float64):
        dy, x = rng.standard_normal((2, *shape)).astype(dtype)
        return dy, x, rng.standard_normal(of_b).astype(dtype)

    yield "x (3, 2), b (2,): one number for each column", draw((3, 2), (2,))
    yield "x (3, 2), b (3, 1): one number for each row", draw((3, 2), (3, 1))
    yield "a batch of one: x (1, 4), b (4,)", draw((1, 4), (4,))
    yield "pictures (2, 3, 4, 5), b (5,)", draw((2, 3, 4, 5), (5,))
    yield "b (1, 3, 1, 5) between them", draw((2, 3, 4, 5), (1, 3, 1, 5))
    yield "b is one number for all, of the shape ()", draw((4, 3), ())
    yield "b (4, 3) is not spread at all", draw((4, 3), (4, 3))
    yield "float32", draw((6, 3), (3,), np.float32)
