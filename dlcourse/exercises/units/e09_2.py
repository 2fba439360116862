"""09.2  A step of Adam."""

import math

import numpy as np

from dlcourse.exercises.unit import solution, wrong

parts = "p", "m", "v"
hints = """
- First the new m and the new v, each from its old value and from g. v averages the squares.
- Divide the new m by 1 - beta1**step and the new v by 1 - beta2**step. step is 1 in the first call.
- p - lr * (m / c1) / (np.sqrt(v / c2) + eps), with the new m and v. The m and v that you return are not divided.
"""
costs = ((1.6, "some names hold arrays that are no longer needed; a chain of operations needs fewer"),)


@solution
def adam_step(p, g, m, v, step, lr, beta1, beta2, eps):
    """p, g, m, v of one shape, step 1, 2, … -> the new p, m, v."""
    m = beta1 * m
    m += (1 - beta1) * g
    v = beta2 * v
    v += (1 - beta2) * g * g
    c1, c2 = 1 - beta1**step, 1 - beta2**step
    change = np.sqrt(v)  # becomes the new p, in place: no array beside the three results is alive at the end
    change /= math.sqrt(c2)
    change += eps
    np.divide(m, change, out=change)
    change *= lr / c1
    np.subtract(p, change, out=change)
    return change, m, v


def moments(g, m, v, beta1, beta2):
    return beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g


@wrong
def uncorrected(p, g, m, v, step, lr, beta1, beta2, eps):
    """m and v begin at 0 and are too small at first; you step with them as they are. Divide m by 1 - beta1**step and v by
    1 - beta2**step, for the step only."""
    m, v = moments(g, m, v, beta1, beta2)
    return p - lr * m / (np.sqrt(v) + eps), m, v


@wrong
def corrected_kept(p, g, m, v, step, lr, beta1, beta2, eps):
    """You hand back the corrected m and v: the next step would correct them once more. Correct them for the step of p, and
    return the plain averages."""
    m, v = moments(g, m, v, beta1, beta2)
    large_m, large_v = m / (1 - beta1**step), v / (1 - beta2**step)
    return p - lr * large_m / (np.sqrt(large_v) + eps), large_m, large_v


@wrong
def eps_in_the_root(p, g, m, v, step, lr, beta1, beta2, eps):
    """Your eps stands in the root. In the paper, and here, it is added to the root: sqrt(v) + eps. For small gradients
    the two are far apart."""
    m, v = moments(g, m, v, beta1, beta2)
    return p - lr * (m / (1 - beta1**step)) / np.sqrt(v / (1 - beta2**step) + eps), m, v


@wrong
def no_root(p, g, m, v, step, lr, beta1, beta2, eps):
    """You divide by v and not by its root. Then twice the gradient makes half the step. m / sqrt(v) does not depend on the
    size of the gradient."""
    m, v = moments(g, m, v, beta1, beta2)
    return p - lr * (m / (1 - beta1**step)) / (v / (1 - beta2**step) + eps), m, v


@wrong
def gradient_in_place_of_m(p, g, m, v, step, lr, beta1, beta2, eps):
    """Your p steps with the gradient of this step alone. That is RMSprop, with a correction. Adam steps with m."""
    m, v = moments(g, m, v, beta1, beta2)
    return p - lr * g / (np.sqrt(v / (1 - beta2**step)) + eps), m, v


@wrong
def corrected_as_at_first(p, g, m, v, step, lr, beta1, beta2, eps):
    """You divide by 1 - beta1 and 1 - beta2 in every step. That is right in the first one. After it the averages hold
    more: divide by 1 - beta1**step and 1 - beta2**step."""
    m, v = moments(g, m, v, beta1, beta2)
    return p - lr * (m / (1 - beta1)) / (np.sqrt(v / (1 - beta2)) + eps), m, v


def counted_from_0(p, g, m, v, step, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta1, beta2)
    step += 1
    return p - lr * (m / (1 - beta1**step)) / (np.sqrt(v / (1 - beta2**step)) + eps), m, v


def betas_exchanged(p, g, m, v, step, lr, beta1, beta2, eps):
    m, v = moments(g, m, v, beta2, beta1)
    return p - lr * (m / (1 - beta2**step)) / (np.sqrt(v / (1 - beta1**step)) + eps), m, v


def v_of_the_gradient(p, g, m, v, step, lr, beta1, beta2, eps):
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * np.abs(g)
    return p - lr * (m / (1 - beta1**step)) / (np.sqrt(v / (1 - beta2**step)) + eps), m, v


def the_old_moments(p, g, m, v, step, lr, beta1, beta2, eps):
    new_m, new_v = moments(g, m, v, beta1, beta2)
    return p - lr * (m / (1 - beta1**step)) / (np.sqrt(v / (1 - beta2**step)) + eps), new_m, new_v


def sums(p, g, m, v, step, lr, beta1, beta2, eps):
    m, v = beta1 * m + g, beta2 * v + g * g
    return p - lr * (m / (1 - beta1**step)) / (np.sqrt(v / (1 - beta2**step)) + eps), m, v


also_wrong = counted_from_0, betas_exchanged, v_of_the_gradient, the_old_moments, sums


def inputs(rng):
    usual = 0.1, 0.9, 0.999, 1e-8
    at_rest = np.zeros(2), np.zeros(2)
    yield "the first step, gradients 2 and -0.5", (np.ones(2), np.array([2.0, -0.5]), *at_rest, 1, *usual)
    yield "the second step", (np.ones(1), np.ones(1), np.array([0.3]), np.array([0.2]), 2, 0.1, 0.5, 0.75, 1e-8)
    yield "tiny gradients", (np.ones(2), np.array([1e-6, 0.0]), *at_rest, 1, 0.1, 0.9, 0.999, 1e-4)
    draw = [rng.standard_normal((3, 2), dtype=np.float32) for _ in range(3)]
    yield "a matrix, float32, step 100", (*draw, rng.random((3, 2), np.float32), 100, *usual)


def large(rng):
    draw = [rng.standard_normal(2**18, dtype=np.float32) for _ in range(3)]
    return (*draw, rng.random(2**18, np.float32), 3, 1e-3, 0.9, 0.999, 1e-8)
