"""03.1  Two neurons, one after the other."""

from dlcourse.exercises.unit import solution, wrong

parts = "dw1", "db1", "dw2", "db2"
hints = """
- Compute z and y first, forward. Then go back from L: first dy, then what comes from it.
- dy = 2 (y - t). The second neuron is the neuron of the text, with z in the place of x: its dw2 is dy times z.
- The second neuron also gives the gradient of its input: dz = dy · w2. For the first neuron dz is what dy was for the
  second.
"""


@solution
def two_neurons_backward(x, t, w1, b1, w2, b2):
    """z = w1 x + b1, y = w2 z + b2, L = (y - t)² -> dw1, db1, dw2, db2."""
    z = w1 * x + b1
    y = w2 * z + b2
    dy = 2 * (y - t)
    dw2, db2 = dy * z, dy
    dz = dy * w2  # when z moves by a step, y moves by w2 times as much
    return dz * x, dz, dw2, db2


@wrong
def link_missing(x, t, w1, b1, w2, b2):
    """Your dw1 and db1 leave out one link of the chain. From dy to dz one passes the second neuron, y = w2 z + b2: when
    z moves by a step, y moves by w2 times as much."""
    z = w1 * x + b1
    dy = 2 * (w2 * z + b2 - t)
    return dy * x, dy, dy * z, dy


@wrong
def x_for_z(x, t, w1, b1, w2, b2):
    """Your dw2 is multiplied by x. But the second neuron does not see x: its input is z. A weight's gradient is dy
    times what stood beside that weight in the forward pass."""
    dy = 2 * (w2 * (w1 * x + b1) + b2 - t)
    return dy * w2 * x, dy * w2, dy * x, dy


@wrong
def z_for_w2(x, t, w1, b1, w2, b2):
    """Going back to z you multiply by z. That is the factor of w2. When z itself moves by a step, y moves by w2 times
    as much."""
    z = w1 * x + b1
    dy = 2 * (w2 * z + b2 - t)
    return dy * z * x, dy * z, dy * z, dy


@wrong
def bias_without_dy(x, t, w1, b1, w2, b2):
    """Your db2 is 1: that is how much y moves with b2. The slope of L is wanted. Multiply by dy."""
    dw1, db1, dw2, _ = two_neurons_backward(x, t, w1, b1, w2, b2)
    return dw1, db1, dw2, 1


@wrong
def w1_for_w2(x, t, w1, b1, w2, b2):
    """Going back to z you multiply by w1, and it is w2 that stands between z and y. Write down y as a formula of z
    alone, and ask how much it moves with z."""
    z = w1 * x + b1
    dy = 2 * (w2 * z + b2 - t)
    return dy * w1 * x, dy * w1, dy * z, dy


also_wrong = (
    lambda *a: tuple(number / 2 for number in two_neurons_backward(*a)),
    lambda x, t, w1, b1, w2, b2: tuple(-gradient for gradient in two_neurons_backward(x, t, w1, b1, w2, b2)),
    lambda *a: two_neurons_backward(*a)[2:] + two_neurons_backward(*a)[:2],
)


def inputs(rng):
    yield "small whole numbers", (2, 4, 3, 1, -1, 5)
    yield "x is 0", (0.0, 1.0, 2.0, 0.5, -3.0, 0.25)
    yield "w2 is 0", (1.5, -2.0, 0.7, 0.1, 0.0, 1.0)
    yield "numbers of 1000", (1000.0, -1000.0, 0.5, 1000.0, -2.0, 3.0)
    for which in ("", ", others", ", more"):
        yield f"random numbers{which}", tuple(float(number) for number in rng.standard_normal(6))
