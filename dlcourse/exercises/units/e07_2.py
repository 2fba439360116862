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


def channel_statistics(x):
    mean = x.mean(axis=leading(x))
    deviations = x - mean
    deviations *= deviations
    return mean, deviations.mean(axis=leading(x))


def terms(dy, x_hat):
    return (dy * x_hat).sum(axis=leading(dy)), dy.sum(axis=leading(dy))


def count(dy):
    return dy.size // dy.shape[-1]


def normalized(x, rng):
    mean, var = channel_statistics(x)
    r = 1 / np.sqrt(var + EPS)
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
    dgamma, dbeta = terms(dy, x_hat)
    return (dy - x_hat * (dgamma / count(dy))) * (gamma * r), dgamma, dbeta


@wrong
def without_variance(dy, x_hat, gamma, r):
    """The way through the variance is missing in dx: the term with x̂. A check with dy equal to 1 everywhere cannot see
    it, since x̂ sums to 0; a random dy does."""
    dgamma, dbeta = terms(dy, x_hat)
    return (dy - dbeta / count(dy)) * (gamma * r), dgamma, dbeta


@wrong
def sums_for_means(dy, x_hat, gamma, r):
    """You subtract sums in dx where means belong. Mean and variance are sums divided by M, and so are the terms that
    come back through them."""
    dgamma, dbeta = terms(dy, x_hat)
    return (dy - dbeta - x_hat * dgamma) * (gamma * r), dgamma, dbeta


@wrong
def without_gamma(dy, x_hat, gamma, r):
    """dx lacks gamma. y is gamma · x̂ + beta, so what arrives at x̂ is gamma · dy."""
    dgamma, dbeta = terms(dy, x_hat)
    per_channel = count(dy)
    return (dy - dbeta / per_channel - x_hat * (dgamma / per_channel)) * r, dgamma, dbeta


@wrong
def by_samples(dy, x_hat, gamma, r):
    """You divide by the number of samples. A channel of pictures has N · H · W values: M is dy.size // dy.shape[-1].
    For pictures of 1 × 1 the two are the same, which hides it."""
    dgamma, dbeta = terms(dy, x_hat)
    return (dy - dbeta / len(dy) - x_hat * (dgamma / len(dy))) * (gamma * r), dgamma, dbeta


def without_r(dy, x_hat, gamma, r):
    dx, dgamma, dbeta = batch_norm_backward(dy, x_hat, gamma, r)
    return dx / r, dgamma, dbeta


def without_x_hat(dy, x_hat, gamma, r):
    dgamma, dbeta = terms(dy, x_hat)
    return (dy - (dbeta + dgamma) / count(dy)) * (gamma * r), dgamma, dbeta


def over_samples(dy, x_hat, gamma, r):
    dgamma, dbeta = (dy * x_hat).sum(axis=0), dy.sum(axis=0)
    return (dy - dbeta / len(dy) - x_hat * (dgamma / len(dy))) * (gamma * r), dgamma, dbeta


def gamma_in_the_parameters(dy, x_hat, gamma, r):
    dx, dgamma, dbeta = batch_norm_backward(dy, x_hat, gamma, r)
    return dx, dgamma * gamma, dbeta * gamma


def means_of_parameters(dy, x_hat, gamma, r):
    dx, dgamma, dbeta = batch_norm_backward(dy, x_hat, gamma, r)
    return dx, dgamma / count(dy), dbeta / count(dy)


also_wrong = without_r, without_x_hat, over_samples, gamma_in_the_parameters, means_of_parameters


def inputs(rng):
    yield "4 samples of 2 numbers", normalized(3 * rng.standard_normal((4, 2)), rng)
    yield "2 images of 2 × 3 with 3 channels", normalized(rng.standard_normal((2, 2, 3, 3)) + 5, rng)
    yield "one image", normalized(rng.standard_normal((1, 3, 3, 2)), rng)
    yield "float32", normalized(rng.standard_normal((5, 2, 2, 4), dtype=np.float32), rng)


def large(rng):
    return normalized(rng.standard_normal((16, 32, 32, 64), dtype=np.float32), rng)
