"""The functions behind the exercises of notebook 07: right answers, known wrong ones, and the inputs they are tried on."""

from collections.abc import Iterator

import numpy as np

Array = np.ndarray
Arrays = tuple[np.ndarray, ...]
Cases = Iterator[tuple[str, tuple]]
EPS = 1e-5


def _leading(x: Array) -> tuple[int, ...]:
    return tuple(range(x.ndim - 1))


# 07.1


def channel_statistics(x: Array) -> Arrays:
    mean = x.mean(axis=_leading(x))
    deviations = x - mean
    deviations *= deviations
    return mean, deviations.mean(axis=_leading(x))


def a_statistic_a_pixel(x: Array) -> Arrays:
    return x.mean(axis=0), x.var(axis=0)


def one_number(x: Array) -> Arrays:
    return x.mean(), x.var()


def over_channels(x: Array) -> Arrays:
    return x.mean(axis=-1), x.var(axis=-1)


def each_picture(x: Array) -> Arrays:
    inside = tuple(range(1, x.ndim - 1))
    return x.mean(axis=inside), x.var(axis=inside)


def channels_first(x: Array) -> Arrays:
    axes = tuple(axis for axis in range(x.ndim) if axis != 1)
    return x.mean(axis=axes), x.var(axis=axes)


def unbiased(x: Array) -> Arrays:
    with np.errstate(all="ignore"):
        return x.mean(axis=_leading(x)), x.var(axis=_leading(x), ddof=1)


def square_minus_square(x: Array) -> Arrays:
    mean = x.mean(axis=_leading(x))
    return mean, (x * x).mean(axis=_leading(x)) - mean * mean


def deviation(x: Array) -> Arrays:
    return x.mean(axis=_leading(x)), x.std(axis=_leading(x))


def pictures(rng: np.random.Generator) -> Cases:
    yield "two images of 2 × 2 with two channels, 0 to 15", (np.arange(16.0).reshape(2, 2, 2, 2).transpose(0, 2, 3, 1),)
    yield "3 images of 2 × 5 with 4 channels", (rng.standard_normal((3, 2, 5, 4)),)
    yield "one image", (rng.standard_normal((1, 3, 2, 5)),)
    yield "4 samples of 3 numbers", (rng.standard_normal((4, 3)),)
    yield "float32 with means of ±1000", (1000 + rng.standard_normal((4, 3, 3, 2), dtype=np.float32),)


def large_pictures(rng: np.random.Generator) -> tuple:
    return (rng.standard_normal((16, 32, 32, 64), dtype=np.float32),)


# 07.2


def batch_norm_backward(dy: Array, x_hat: Array, gamma: Array, r: Array) -> Arrays:
    axes = _leading(dy)
    per_channel = dy.size // dy.shape[-1]
    dx = dy * x_hat
    dgamma, dbeta = dx.sum(axis=axes), dy.sum(axis=axes)
    np.multiply(x_hat, dgamma / per_channel, out=dx)
    np.subtract(dy, dx, out=dx)
    dx -= dbeta / per_channel
    dx *= gamma * r
    return dx, dgamma, dbeta


def _terms(dy: Array, x_hat: Array) -> Arrays:
    return (dy * x_hat).sum(axis=_leading(dy)), dy.sum(axis=_leading(dy))


def _count(dy: Array) -> int:
    return dy.size // dy.shape[-1]


def constants(dy: Array, x_hat: Array, gamma: Array, r: Array) -> Arrays:
    return dy * (gamma * r), *_terms(dy, x_hat)


def without_mean(dy: Array, x_hat: Array, gamma: Array, r: Array) -> Arrays:
    dgamma, dbeta = _terms(dy, x_hat)
    return (dy - x_hat * (dgamma / _count(dy))) * (gamma * r), dgamma, dbeta


def without_variance(dy: Array, x_hat: Array, gamma: Array, r: Array) -> Arrays:
    dgamma, dbeta = _terms(dy, x_hat)
    return (dy - dbeta / _count(dy)) * (gamma * r), dgamma, dbeta


def sums_for_means(dy: Array, x_hat: Array, gamma: Array, r: Array) -> Arrays:
    dgamma, dbeta = _terms(dy, x_hat)
    return (dy - dbeta - x_hat * dgamma) * (gamma * r), dgamma, dbeta


def without_gamma(dy: Array, x_hat: Array, gamma: Array, r: Array) -> Arrays:
    dgamma, dbeta = _terms(dy, x_hat)
    per_channel = _count(dy)
    return (dy - dbeta / per_channel - x_hat * (dgamma / per_channel)) * r, dgamma, dbeta


def by_samples(dy: Array, x_hat: Array, gamma: Array, r: Array) -> Arrays:
    dgamma, dbeta = _terms(dy, x_hat)
    return (dy - dbeta / len(dy) - x_hat * (dgamma / len(dy))) * (gamma * r), dgamma, dbeta


def without_r(dy: Array, x_hat: Array, gamma: Array, r: Array) -> Arrays:
    dx, dgamma, dbeta = batch_norm_backward(dy, x_hat, gamma, r)
    return dx / r, dgamma, dbeta


def without_x_hat(dy: Array, x_hat: Array, gamma: Array, r: Array) -> Arrays:
    dgamma, dbeta = _terms(dy, x_hat)
    return (dy - (dbeta + dgamma) / _count(dy)) * (gamma * r), dgamma, dbeta


def over_samples(dy: Array, x_hat: Array, gamma: Array, r: Array) -> Arrays:
    dgamma, dbeta = (dy * x_hat).sum(axis=0), dy.sum(axis=0)
    return (dy - dbeta / len(dy) - x_hat * (dgamma / len(dy))) * (gamma * r), dgamma, dbeta


def gamma_in_the_parameters(dy: Array, x_hat: Array, gamma: Array, r: Array) -> Arrays:
    dx, dgamma, dbeta = batch_norm_backward(dy, x_hat, gamma, r)
    return dx, dgamma * gamma, dbeta * gamma


def means_of_parameters(dy: Array, x_hat: Array, gamma: Array, r: Array) -> Arrays:
    dx, dgamma, dbeta = batch_norm_backward(dy, x_hat, gamma, r)
    return dx, dgamma / _count(dy), dbeta / _count(dy)


def _normalized(x: Array, rng: np.random.Generator) -> tuple:
    mean, var = channel_statistics(x)
    r = 1 / np.sqrt(var + EPS)
    gamma = np.asarray(1.5 + rng.standard_normal(x.shape[-1]), x.dtype)
    return rng.standard_normal(x.shape).astype(x.dtype), (x - mean) * r, gamma, r


def gradients(rng: np.random.Generator) -> Cases:
    yield "4 samples of 2 numbers", _normalized(3 * rng.standard_normal((4, 2)), rng)
    yield "2 images of 2 × 3 with 3 channels", _normalized(rng.standard_normal((2, 2, 3, 3)) + 5, rng)
    yield "one image", _normalized(rng.standard_normal((1, 3, 3, 2)), rng)
    yield "float32", _normalized(rng.standard_normal((5, 2, 2, 4), dtype=np.float32), rng)


def large_gradients(rng: np.random.Generator) -> tuple:
    return _normalized(rng.standard_normal((16, 32, 32, 64), dtype=np.float32), rng)


# 07.3


def running_statistics(
    running_mean: Array, running_var: Array, mean: Array, var: Array, count: int, momentum: float
) -> Arrays:
    unbiased = var * (count / (count - 1))
    return running_mean + momentum * (mean - running_mean), running_var + momentum * (unbiased - running_var)


def biased(running_mean: Array, running_var: Array, mean: Array, var: Array, count: int, momentum: float) -> Arrays:
    return running_mean + momentum * (mean - running_mean), running_var + momentum * (var - running_var)


def swapped(running_mean: Array, running_var: Array, mean: Array, var: Array, count: int, momentum: float) -> Arrays:
    return running_statistics(running_mean, running_var, mean, var, count, 1 - momentum)


def wrong_way(running_mean: Array, running_var: Array, mean: Array, var: Array, count: int, momentum: float) -> Arrays:
    unbiased = var * ((count - 1) / count)
    return running_mean + momentum * (mean - running_mean), running_var + momentum * (unbiased - running_var)


def only_the_batch(
    running_mean: Array, running_var: Array, mean: Array, var: Array, count: int, momentum: float
) -> Arrays:
    return mean, var * (count / (count - 1))


def added_up(running_mean: Array, running_var: Array, mean: Array, var: Array, count: int, momentum: float) -> Arrays:
    return running_mean + momentum * mean, running_var + momentum * var * (count / (count - 1))


def in_place(running_mean: Array, running_var: Array, mean: Array, var: Array, count: int, momentum: float) -> None:
    running_mean += momentum * (mean - running_mean)
    running_var += momentum * (var * (count / (count - 1)) - running_var)


def running(rng: np.random.Generator) -> Cases:
    yield "the first step, 3 channels", (np.zeros(3), np.ones(3), np.array([1.0, -2, 3]), np.array([4.0, 1, 0]), 4, 0.1)
    yield "a later step", (*rng.standard_normal((2, 5)) ** 2, *rng.standard_normal((2, 5)) ** 2, 64, 0.25)
    yield "two values a channel", (np.ones(2), np.ones(2), np.zeros(2), np.full(2, 9.0), 2, 0.01)
    yield "float32", (*(rng.standard_normal((4, 6), dtype=np.float32) ** 2), 12, 0.3)


# 07.4


def fold(W: Array, b: Array, gamma: Array, beta: Array, mean: Array, var: Array, eps: float) -> Arrays:
    scale = gamma / np.sqrt(var + eps)
    return W * scale, (b - mean) * scale + beta


def fold_by_variance(W: Array, b: Array, gamma: Array, beta: Array, mean: Array, var: Array, eps: float) -> Arrays:
    scale = gamma / (var + eps)
    return W * scale, (b - mean) * scale + beta


def eps_outside(W: Array, b: Array, gamma: Array, beta: Array, mean: Array, var: Array, eps: float) -> Arrays:
    scale = gamma / (np.sqrt(var) + eps)
    return W * scale, (b - mean) * scale + beta


def bias_unscaled(W: Array, b: Array, gamma: Array, beta: Array, mean: Array, var: Array, eps: float) -> Arrays:
    scale = gamma / np.sqrt(var + eps)
    return W * scale, b - mean * scale + beta


def bias_forgotten(W: Array, b: Array, gamma: Array, beta: Array, mean: Array, var: Array, eps: float) -> Arrays:
    scale = gamma / np.sqrt(var + eps)
    return W * scale, beta - mean * scale


def mean_unscaled(W: Array, b: Array, gamma: Array, beta: Array, mean: Array, var: Array, eps: float) -> Arrays:
    scale = gamma / np.sqrt(var + eps)
    return W * scale, b * scale - mean + beta


def mean_forgotten(W: Array, b: Array, gamma: Array, beta: Array, mean: Array, var: Array, eps: float) -> Arrays:
    scale = gamma / np.sqrt(var + eps)
    return W * scale, b * scale + beta


def rows_scaled(W: Array, b: Array, gamma: Array, beta: Array, mean: Array, var: Array, eps: float) -> Arrays:
    scale = gamma / np.sqrt(var + eps)
    return W * scale[:, None], (b - mean) * scale + beta


def layers(rng: np.random.Generator) -> Cases:
    yield "an affine layer, 3 → 3", _layer(rng, (3, 3))
    yield "an affine layer, 2 → 4", _layer(rng, (2, 4))
    yield "a convolution, 3 × 3, 4 → 4 channels", _layer(rng, (3, 3, 4, 4))
    yield "a small variance", (*_layer(rng, (2, 2))[:5], np.array([0.0, 4e-4]), 1e-3)
    yield "float32", (*(part.astype(np.float32) for part in _layer(rng, (5, 3))[:6]), 1e-2)


def _layer(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple:
    b, gamma, beta, mean = rng.standard_normal((4, shape[-1]))
    return rng.standard_normal(shape), b, 1 + gamma, beta, mean, rng.uniform(0.1, 4, shape[-1]), 1e-2


# 07.5


def join_statistics(mean_a: Array, var_a: Array, count_a: int, mean_b: Array, var_b: Array, count_b: int) -> Arrays:
    whole = count_a + count_b
    a, b = count_a / whole, count_b / whole
    return a * mean_a + b * mean_b, a * var_a + b * var_b + a * b * (mean_a - mean_b) ** 2


def plain_means(mean_a: Array, var_a: Array, count_a: int, mean_b: Array, var_b: Array, count_b: int) -> Arrays:
    return (mean_a + mean_b) / 2, (var_a + var_b) / 2


def mean_of_variances(mean_a: Array, var_a: Array, count_a: int, mean_b: Array, var_b: Array, count_b: int) -> Arrays:
    whole = count_a + count_b
    mean = (count_a * mean_a + count_b * mean_b) / whole
    return mean, (count_a * var_a + count_b * var_b) / whole


def halves(mean_a: Array, var_a: Array, count_a: int, mean_b: Array, var_b: Array, count_b: int) -> Arrays:
    return join_statistics(mean_a, var_a, 1, mean_b, var_b, 1)


def sum_of_variances(mean_a: Array, var_a: Array, count_a: int, mean_b: Array, var_b: Array, count_b: int) -> Arrays:
    whole = count_a + count_b
    mean = (count_a * mean_a + count_b * mean_b) / whole
    return mean, var_a + var_b


def divided_once(mean_a: Array, var_a: Array, count_a: int, mean_b: Array, var_b: Array, count_b: int) -> Arrays:
    mean, inside = mean_of_variances(mean_a, var_a, count_a, mean_b, var_b, count_b)
    return mean, inside + count_a * count_b / (count_a + count_b) * (mean_a - mean_b) ** 2


def statistics_of_means(mean_a: Array, var_a: Array, count_a: int, mean_b: Array, var_b: Array, count_b: int) -> Arrays:
    whole = count_a + count_b
    mean = (count_a * mean_a + count_b * mean_b) / whole
    return mean, (count_a * (mean_a - mean) ** 2 + count_b * (mean_b - mean) ** 2) / whole


def parts(rng: np.random.Generator) -> Cases:
    one = np.ones(1)
    yield "[1, 3] and [5, 7]", (2 * one, 1 * one, 2, 6 * one, 1 * one, 2)
    yield "3 and 5 values", (*_part(rng, 3, 4), *_part(rng, 5, 4))
    yield "one value and 7 values", (*_part(rng, 1, 2), *_part(rng, 7, 2))
    yield "float32", (*_part(rng, 6, 3, np.float32), *_part(rng, 2, 3, np.float32))


def _part(rng: np.random.Generator, count: int, channels: int, dtype: type = np.float64) -> tuple:
    x: Array = np.asarray(rng.standard_normal((count, channels)) * 2 + rng.integers(-9, 9, channels), dtype)
    return x.mean(axis=0), x.var(axis=0), count
