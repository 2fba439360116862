"""07.2  The backward pass of BatchNorm."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

EPS = 1e-5
parts = "dx", "dgamma", "dbeta"
hints = """
- Begin with the two that are sums: dbeta sums dy, and dgamma sums dy · x̂, each over all axes but the last.
- The two means in dx are these sums, divided by the number M of values a channel. M is dy.size // dy.shape[-1].
- dx = gamma · r · (dy - dbeta / M - x̂ · dgamma / M).
"""
costs = (
    (2.5, "three arrays like x or more at one moment; write the products into an array that is there (out=)"),
    (1.5, "two arrays like x at one moment; the product with x̂ can be written into dx (out=dx)"),
)


@solution
def batch_norm_backward(dy, x_hat, gamma, r):
    """dy, x_hat (N, ..., C), gamma, r (C,) -> dx like dy, dgamma (C,), dbeta (C,)."""
    axes = tuple(range(dy.ndim - 1))
    M = dy.size // dy.shape[-1]  # values a channel
    dx = dy * x_hat
    dgamma = dx.sum(axis=axes)
    dbeta = dy.sum(axis=axes)
    np.multiply(x_hat, dgamma / M, out=dx)  # the same array is used three times
    np.subtract(dy, dx, out=dx)
    dx -= dbeta / M
    dx *= gamma * r
    return dx, dgamma, dbeta


def leading(x):
    return tuple(range(x.ndim - 1))


def terms(dy, x_hat):
    return (dy * x_hat).sum(axis=leading(dy)), dy.sum(axis=leading(dy))


def mended(dy, x_hat, scale, mean, share):
    """dx with these two terms, and the right sums."""
    return (dy - mean - x_hat * share) * scale, *terms(dy, x_hat)


def count(dy):
    return dy.size // dy.shape[-1]


def normalized(x, rng):
    mean, r = x.mean(axis=leading(x)), 1 / np.sqrt(x.var(axis=leading(x)) + EPS)
    gamma = np.asarray(1.5 + rng.standard_normal(x.shape[-1]), x.dtype)
    return rng.standard_normal(x.shape).astype(x.dtype), (x - mean) * r, gamma, r


@wrong
def constants(dy, x_hat, gamma, r):
    """Your dx is gamma · r · dy: it takes mean and variance for constants. Both are computed from x, so each x moves
    all outputs of its channel. Two terms are missing; see the three ways in section 6."""
    return dy * (gamma * r), *terms(dy, x_hat)


@wrong
def without_mean(dy, x_hat, gamma, r):
    """The way through the mean is missing in dx: subtract the mean of dy over the channel. Test: when all x of a
    channel move alike, y does not move, so dx must sum to 0 in each channel."""
    return mended(dy, x_hat, gamma * r, 0, terms(dy, x_hat)[0] / count(dy))


@wrong
def without_variance(dy, x_hat, gamma, r):
    """The way through the variance is missing in dx: the term with x̂. A check with dy equal to 1 everywhere cannot see
    it, since x̂ sums to 0; a random dy does."""
    return mended(dy, x_hat, gamma * r, dy.mean(axis=leading(dy)), 0)


@wrong
def sums_for_means(dy, x_hat, gamma, r):
    """You subtract sums in dx where means belong. Mean and variance are sums divided by M, and so are the terms that
    come back through them."""
    return mended(dy, x_hat, gamma * r, terms(dy, x_hat)[1], terms(dy, x_hat)[0])


@wrong
def without_gamma(dy, x_hat, gamma, r):
    """dx lacks gamma. y is gamma · x̂ + beta, so what arrives at x̂ is gamma · dy."""
    return batch_norm_backward(dy, x_hat, gamma / gamma, r)


@wrong
def by_samples(dy, x_hat, gamma, r):
    """You divide by the number of samples. A channel of pictures has N · H · W values: M is dy.size // dy.shape[-1].
    For pictures of 1 × 1 the two are the same, which hides it."""
    return mended(dy, x_hat, gamma * r, *(one / len(dy) for one in terms(dy, x_hat)[::-1]))


also_wrong = (
    lambda dy, x_hat, gamma, r: batch_norm_backward(dy, x_hat, gamma, r / r),
    lambda dy, x_hat, gamma, r: mended(dy, x_hat, gamma * r, *(sum(terms(dy, x_hat)) / count(dy), 0)),
    lambda dy, x_hat, gamma, r: mended(dy, x_hat, gamma * r, dy.mean(axis=0), (dy * x_hat).mean(axis=0)),
    lambda dy, x_hat, g, r: ((a := batch_norm_backward(dy, x_hat, g, r))[0], a[1] * g, a[2] * g),
    lambda dy, *a: ((all_ := batch_norm_backward(dy, *a))[0], *(one / count(dy) for one in all_[1:])),
)


def inputs(rng):
    yield "4 samples of 2 numbers", normalized(3 * rng.standard_normal((4, 2)), rng)
    yield "2 images of 2 × 3 with 3 channels", normalized(rng.standard_normal((2, 2, 3, 3)) + 5, rng)
    yield "one image", normalized(rng.standard_normal((1, 3, 3, 2)), rng)
    yield "float32", normalized(rng.standard_normal((5, 2, 2, 4), dtype=np.float32), rng)


def large(rng):
    return normalized(rng.standard_normal((16, 32, 32, 64), dtype=np.float32), rng)
