"""09.1  A step with momentum."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

parts = "p", "velocity"
hints = """
- First the new velocity from the old one and the gradient, then p from the new velocity. Two lines.
- The old velocity is multiplied by `momentum`; the whole gradient is added. lr comes only into the step of p.
- velocity = momentum * velocity + g, and then p - lr * velocity.
"""


@solution
def momentum_step(p, g, velocity, lr, momentum):
    """p, g, velocity of one shape -> the new p, the new velocity."""
    velocity = momentum * velocity + g  # fades, and takes in the whole gradient
    return p - lr * velocity, velocity


@wrong
def the_old_velocity(p, g, velocity, lr, momentum):
    """Your p goes with the old velocity. Then the first step, from velocity 0, does not move at all. First make the new
    velocity, then step with it."""
    return p - lr * velocity, momentum * velocity + g


@wrong
def average(p, g, velocity, lr, momentum):
    """You take (1 - momentum) of the gradient: an average, as Adam's m is one. Here the whole gradient is added, so that
    steps in one direction add up to 1 / (1 - momentum) times one of them."""
    velocity = momentum * velocity + (1 - momentum) * g
    return p - lr * velocity, velocity


@wrong
def lr_in_velocity(p, g, velocity, lr, momentum):
    """Your velocity holds lr times the gradient. Both forms are in use, and while lr stays the same p moves equally. Here
    lr stands in the step of p, so that a schedule changes the speed at once and not only what is added to it."""
    velocity = momentum * velocity + lr * g
    return p - velocity, velocity


@wrong
def lr_and_sign_in_velocity(p, g, velocity, lr, momentum):
    """Your velocity holds minus lr times the gradient, and is added to p: a form that is in use, too. Here the velocity
    takes in the gradient itself; lr and the minus stand in the step of p."""
    velocity = momentum * velocity - lr * g
    return p + velocity, velocity


@wrong
def uphill(p, g, velocity, lr, momentum):
    """You add the velocity: p goes up the hill. The gradient points to where the loss grows, so subtract."""
    velocity = momentum * velocity + g
    return p + lr * velocity, velocity


@wrong
def nesterov(p, g, velocity, lr, momentum):
    """That is Nesterov's step, which looks ahead: it adds momentum · velocity to the gradient once more. Here p goes with
    the velocity itself."""
    velocity = momentum * velocity + g
    return p - lr * (g + momentum * velocity), velocity


def all_of_the_velocity(p, g, velocity, lr, momentum):
    velocity = velocity + g
    return p - lr * velocity, velocity


also_wrong = (
    lambda p, g, velocity, lr, momentum: (p - lr * g, velocity),
    all_of_the_velocity,
    lambda p, g, velocity, lr, momentum: all_of_the_velocity(p, momentum * g, velocity, lr, momentum),
)


def inputs(rng):
    one = np.ones
    yield "one number, at rest", (one(1), np.array([2.0]), np.zeros(1), 0.1, 0.9)
    yield "one number that moves", (one(1), np.array([2.0]), np.array([3.0]), 0.1, 0.9)
    yield "no momentum", (one(2), np.array([1.0, -1.0]), np.array([5.0, 5.0]), 0.5, 0.0)
    yield "a matrix, float32", (*(rng.standard_normal((3, 2), dtype=np.float32) for _ in range(3)), 0.01, 0.5)
