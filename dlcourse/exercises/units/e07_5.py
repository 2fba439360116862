"""07.5  The statistics of two parts together."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

parts = "mean", "var"
hints = """
- The mean of the whole is the mean of the two means, each weighted by its share of the values.
- Take [1, 3] and [5, 7]: both variances are 1, and the whole has 5. What is missing is how far the two means are from
  the common one.
- With the shares a = count_a / (count_a + count_b) and b = 1 - a: var = a · var_a + b · var_b + a · b · (mean_a -
  mean_b)².
"""


@solution
def join_statistics(mean_a, var_a, count_a, mean_b, var_b, count_b):
    """Means and variances (C,) of two parts and their numbers of values -> mean (C,), var (C,) of all values."""
    a = count_a / (count_a + count_b)
    b = count_b / (count_a + count_b)
    mean = a * mean_a + b * mean_b
    inside = a * var_a + b * var_b
    between = a * b * (mean_a - mean_b) ** 2  # how far the two means lie apart is spread too
    return mean, inside + between


def part(rng, count, channels, dtype=np.float64):
    x = np.asarray(rng.standard_normal((count, channels)) * 2 + rng.integers(-9, 9, channels), dtype)
    return x.mean(axis=0), x.var(axis=0), count


@wrong
def plain_means(mean_a, var_a, count_a, mean_b, var_b, count_b):
    """You average means and variances. For [1, 3] and [5, 7] that gives a variance of 1, and the whole has 5. How far
    the two means lie apart has to come in, and parts of unequal size must be weighted."""
    return (mean_a + mean_b) / 2, (var_a + var_b) / 2


@wrong
def mean_of_variances(mean_a, var_a, count_a, mean_b, var_b, count_b):
    """Your variance holds the spread inside the parts, but not between them: the two means differ,
    and that is spread too."""
    mean, _ = join_statistics(mean_a, var_a, count_a, mean_b, var_b, count_b)
    return mean, (count_a * var_a + count_b * var_b) / (count_a + count_b)


@wrong
def halves(mean_a, var_a, count_a, mean_b, var_b, count_b):
    """You treat the two parts as equally large. Weight each by its number of values."""
    return join_statistics(mean_a, var_a, 1, mean_b, var_b, 1)


@wrong
def sum_of_variances(mean_a, var_a, count_a, mean_b, var_b, count_b):
    """You add the two variances. Variances add up where independent numbers are added; here two groups are put
    together. Each group counts by its share, and the distance of the means comes in."""
    return join_statistics(mean_a, var_a, count_a, mean_b, var_b, count_b)[0], var_a + var_b


@wrong
def divided_once(mean_a, var_a, count_a, mean_b, var_b, count_b):
    """The term with the two means is too large, by the number of all values. count_a · count_b / (count_a + count_b) ·
    (mean_a - mean_b)² belongs to a sum of squares; a variance divides it by that number once more."""
    mean, inside = mean_of_variances(mean_a, var_a, count_a, mean_b, var_b, count_b)
    return mean, inside + count_a * count_b / (count_a + count_b) * (mean_a - mean_b) ** 2


@wrong
def squares(mean_a, var_a, count_a, mean_b, var_b, count_b):
    """You subtract the square of the mean from the mean of the squares. Where the means are large and the variances
    small, the two are nearly equal, and their difference has lost its digits. Use the difference of the means."""
    mean, squares = mean_of_variances(mean_a, var_a + mean_a**2, count_a, mean_b, var_b + mean_b**2, count_b)
    return mean, squares - mean**2


also_wrong = (
    lambda m, v, n, m_b, v_b, n_b: join_statistics(m, 0 * v, n, m_b, 0 * v_b, n_b),
    lambda *a: ((both := mean_of_variances(*a))[0], both[1] + (a[0] - a[3]) ** 2),
)


def inputs(rng):
    one = np.ones(1)
    yield "[1, 3] and [5, 7]", (2 * one, 1 * one, 2, 6 * one, 1 * one, 2)
    yield "3 and 5 values", (*part(rng, 3, 4), *part(rng, 5, 4))
    yield "one value and 7 values", (*part(rng, 1, 2), *part(rng, 7, 2))
    yield "float32", (*part(rng, 6, 3, np.float32), *part(rng, 2, 3, np.float32))
    yield "means of 10,000, small variances", (1e4 * one, 1e-2 * one, 3, 1e4 * one + 0.1, 2e-2 * one, 5)
