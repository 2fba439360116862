"""02.2  What a sampler sees."""

from dlcourse.exercises.unit import solution, wrong

MIB = 2**20
parts = "sampled", "true"
hints = """
- Write a small function first: how many bytes are alive at one given second? It adds up all arrays that are made
  already and not yet gone.
- The sampler's peak is the largest value of that function over the looks. 0 if there are none: `max(…, default=0)`.
- The number of bytes rises only when something is made. So for the true peak it is enough to ask at the seconds at
  which an array is made.
"""


@solution
def two_peaks(arrays, looks):
    """arrays: [(made, gone, bytes), …], looks: [second, …] -> what a sampler finds, and the true peak, in bytes."""

    def alive(second):
        return sum(size for made, gone, size in arrays if made <= second < gone)

    sampled = max([alive(second) for second in looks], default=0)
    true = max([alive(made) for made, _, _ in arrays], default=0)  # it rises only when something is made
    return sampled, true


def largest_array(arrays, looks):
    seen = (size for made, gone, size in arrays for look in looks if made <= look < gone)
    return max(seen, default=0), max((size for _, _, size in arrays), default=0)


def all_added(arrays, looks):
    met = (size for made, gone, size in arrays if any(made <= look < gone for look in looks))
    return sum(met), sum(size for _, _, size in arrays)


@wrong
def still_there(arrays, looks):
    """An array that is gone at second 0.5 is not there any more at 0.5. Ask for `made <= second < gone`."""

    def alive(second):
        return sum(size for made, gone, size in arrays if made <= second <= gone)

    return max(map(alive, looks), default=0), max((alive(made) for made, _, _ in arrays), default=0)


@wrong
def the_looks_are_all(arrays, looks):
    """Your true peak is what the sampler saw. Between two looks there can be more: that is why the sampler's number is
    a lower bound."""
    sampled = two_peaks(arrays, looks)[0]
    return sampled, sampled


@wrong
def last_look(arrays, looks):
    """Your sampler keeps its last look. A peak is the largest of all looks."""
    return two_peaks(arrays, looks[-1:])[0], two_peaks(arrays, looks)[1]


def never_freed(arrays, looks):
    sampled = max((sum(size for made, _, size in arrays if made <= look) for look in looks), default=0)
    return sampled, sum(size for _, _, size in arrays)


@wrong
def not_at_once(arrays, looks):
    """An array that is made at second 0.5 is there at 0.5 already. Ask for `made <= second < gone`."""
    seen = [sum(size for made, gone, size in arrays if made < look < gone) for look in looks]
    return max(seen, default=0), two_peaks(arrays, looks)[1]


@wrong
def true_is_the_largest(arrays, looks):
    """Your true peak is the largest single array. Arrays that are alive at the same second add up."""
    return two_peaks(arrays, looks)[0], max((size for _, _, size in arrays), default=0)


@wrong
def true_is_the_sum(arrays, looks):
    """Your true peak is the sum of all arrays. Some are gone when others are made: a peak belongs to one moment."""
    return two_peaks(arrays, looks)[0], sum(size for _, _, size in arrays)


also_wrong = largest_array, all_added, never_freed


def inputs(rng):
    yield "one array, one look that meets it", ([(0.0, 1.0, 64 * MIB)], [0.5])
    yield "one short array between two looks", ([(0.25, 0.5, 64 * MIB)], [0.0, 1.0])
    yield "two arrays one after the other: never both", ([(0.0, 0.5, 3 * MIB), (0.5, 1.0, 2 * MIB)], [0.25, 0.5, 0.75])
    yield "two arrays that overlap where nobody looks", ([(0.0, 0.5, 3 * MIB), (0.25, 1.0, 2 * MIB)], [0.125, 0.75])
    yield "a small one that is met, a large one that is not", ([(0.0, 1.0, MIB), (1.0, 1.5, 9 * MIB)], [0.5, 2.0])
    yield "nobody looks", ([(0.0, 1.0, MIB)], [])
    yield "nothing is made", ([], [0.0, 0.5])
    lives = [(float(made), float(made + rng.integers(1, 4)), int(rng.integers(1, 9)) * MIB) for made in range(12)]
    yield "twelve arrays, a look every 5 seconds", (lives, [0.5, 5.5, 10.5])
    yield (
        "a look at the very second at which an array is made",
        ([(0.0, 1.0, MIB), (0.0, 1.0, MIB), (0.5, 1.0, MIB)], [0.5]),
    )
