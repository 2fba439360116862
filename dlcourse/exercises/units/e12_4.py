"""12.4  The part that no batch changes."""

from dlcourse.exercises.unit import solution, wrong

SLOTS = {"SGD": 0, "Momentum": 1, "Adam": 2}
parts = "params", "grads", "slots"
hints = """
- Three products. Only the middle one depends on the micro-batches, and it has only two cases.
- With one micro-batch there is one set of gradients. With more there are two: the sum of the earlier ones, and those of
  the present one. Five micro-batches do not need six.
"""


@solution
def fixed_bytes(numbers, optimizer, itemsize, micro_batches):
    """-> bytes of the parameters, of the gradients (and their sum), and of the optimizer's slots."""
    params = numbers * itemsize
    sets = 1 if micro_batches == 1 else 2  # those being made, and the sum of the earlier ones
    remembered = {"SGD": 0, "Momentum": 1, "Adam": 2}[optimizer]
    return params, sets * params, remembered * params


@wrong
def one_sum_forgotten(numbers, optimizer, itemsize, micro_batches):
    """With micro-batches there are two sets of gradients: the sum so far, and those that are being made."""
    size = numbers * itemsize
    return size, size, size * SLOTS[optimizer]


@wrong
def a_set_for_each(numbers, optimizer, itemsize, micro_batches):
    """You keep a set of gradients for each micro-batch. Each is added to the sum and let go: two sets are enough,
    however many micro-batches there are."""
    size = numbers * itemsize
    return size, size * micro_batches, size * SLOTS[optimizer]


@wrong
def divided(numbers, optimizer, itemsize, micro_batches):
    """Micro-batches divide what grows with the samples. A gradient has the shape of its parameter, whatever the batch."""
    size = numbers * itemsize
    return size, size // micro_batches, size * SLOTS[optimizer]


@wrong
def adam_once(numbers, optimizer, itemsize, micro_batches):
    """Adam remembers two numbers for each parameter, you count one."""
    params, grads, slots = fixed_bytes(numbers, optimizer, itemsize, micro_batches)
    return params, grads, min(slots, params)


@wrong
def always_adam(numbers, optimizer, itemsize, micro_batches):
    """You count two slots for each optimizer. SGD remembers nothing, momentum one number for each parameter."""
    return fixed_bytes(numbers, "Adam", itemsize, micro_batches)


@wrong
def always_two_sets(numbers, optimizer, itemsize, micro_batches):
    """With one micro-batch you count two sets of gradients. There is no sum of earlier ones then: one set."""
    params, _, slots = fixed_bytes(numbers, optimizer, itemsize, micro_batches)
    return params, 2 * params, slots


also_wrong = (
    lambda n, name, *a: (*fixed_bytes(n, name, *a)[:2], 4 * n * SLOTS[name]),
    lambda *a: (*(all_ := fixed_bytes(*a))[:2], all_[0] + all_[2]),
    lambda *a: ((all_ := fixed_bytes(*a))[0], all_[0] * (1 + a[3]), all_[2]),
)


def inputs(rng):
    yield "the story's network, Adam, float32, the batch at once", (2_168_362, "Adam", 4, 1)
    yield "the same in four micro-batches", (2_168_362, "Adam", 4, 4)
    yield "the same in two", (2_168_362, "Adam", 4, 2)
    yield "SGD remembers nothing", (1_000, "SGD", 4, 1)
    yield "momentum in float64, five micro-batches", (1_000, "Momentum", 8, 5)
    yield "Adam in float64", (10, "Adam", 8, 1)
