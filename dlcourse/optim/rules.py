"""The rules: how one block of a parameter and of its slots changes."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dlcourse.optim.base import Array, Needs, Optimizer


def _average_square(average: Array, x: Array, s: Array, decay: float) -> None:
    """average <- decay average + (1 - decay) x²."""
    average *= decay
    np.multiply(x, x, out=s)
    s *= 1 - decay
    average += s


def _subtract_scaled(p: Array, x: Array, squares: Array, s: Array, lr: float, eps: float) -> None:
    """p <- p - lr x / (sqrt(squares) + eps)."""
    np.sqrt(squares, out=s)
    s += eps
    np.divide(x, s, out=s)
    s *= lr
    p -= s


@dataclass(frozen=True)
class SGD(Optimizer):
    """p <- p - lr g  (stochastic gradient descent)."""

    lr: float = 1e-3
    weight_decay: float = 0.0

    def rule(self, p: Array, g: Array, slots: list[Array], scratch: Array, lr: float, step: int) -> None:
        p -= np.multiply(g, lr, out=scratch[0])


@dataclass(frozen=True)
class Momentum(Optimizer):
    """velocity <- momentum velocity + g;  p <- p - lr velocity  (Polyak 1964)."""

    lr: float = 1e-3
    momentum: float = 0.9
    weight_decay: float = 0.0
    needs = Needs(("velocity",))
    look_ahead: ClassVar[bool] = False

    def rule(self, p: Array, g: Array, slots: list[Array], scratch: Array, lr: float, step: int) -> None:
        (velocity,), change = slots, scratch[0]
        velocity *= self.momentum
        velocity += g
        if self.look_ahead:
            np.multiply(velocity, self.momentum, out=change)
            change += g
            change *= lr
        else:
            np.multiply(velocity, lr, out=change)
        p -= change


@dataclass(frozen=True)
class Nesterov(Momentum):
    """velocity <- momentum velocity + g;  p <- p - lr (g + momentum velocity)  (Sutskever et al. 2013)."""

    look_ahead = True


@dataclass(frozen=True)
class AdaGrad(Optimizer):
    """squares <- squares + g²;  p <- p - lr g / (sqrt(squares) + eps)  (Duchi et al. 2011)."""

    lr: float = 1e-2
    eps: float = 1e-10
    weight_decay: float = 0.0
    needs = Needs(("squares",))

    def rule(self, p: Array, g: Array, slots: list[Array], scratch: Array, lr: float, step: int) -> None:
        (squares,), s = slots, scratch[0]
        squares += np.multiply(g, g, out=s)
        _subtract_scaled(p, g, squares, s, lr, self.eps)


@dataclass(frozen=True)
class RMSprop(Optimizer):
    """squares <- alpha squares + (1 - alpha) g²;  p <- p - lr g / (sqrt(squares) + eps)  (Tieleman and Hinton 2012)."""

    lr: float = 1e-2
    alpha: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0.0
    needs = Needs(("squares",))

    def rule(self, p: Array, g: Array, slots: list[Array], scratch: Array, lr: float, step: int) -> None:
        (squares,), s = slots, scratch[0]
        _average_square(squares, g, s, self.alpha)
        _subtract_scaled(p, g, squares, s, lr, self.eps)


@dataclass(frozen=True)
class AdaDelta(Optimizer):
    """d = g sqrt(changes + eps) / sqrt(squares + eps);  p <- p - lr d  (Zeiler 2012).

    squares <- rho squares + (1 - rho) g² before d, changes <- rho changes + (1 - rho) d² after it.
    """

    lr: float = 1.0
    rho: float = 0.9
    eps: float = 1e-6
    weight_decay: float = 0.0
    needs = Needs(("squares", "changes"), scratch=2)

    def rule(self, p: Array, g: Array, slots: list[Array], scratch: Array, lr: float, step: int) -> None:
        squares, changes = slots
        d, s = scratch[:2]
        _average_square(squares, g, s, self.rho)
        np.add(changes, self.eps, out=d)
        d /= np.add(squares, self.eps, out=s)
        np.sqrt(d, out=d)
        d *= g
        _average_square(changes, d, s, self.rho)
        d *= lr
        p -= d


@dataclass(frozen=True)
class Adam(Optimizer):
    """p <- p - lr (m / c1) / (sqrt(v / c2) + eps)  (Kingma and Ba 2015).

    m <- beta1 m + (1 - beta1) g;  v <- beta2 v + (1 - beta2) g²;  c1 = 1 - beta1^step and c2 = 1 - beta2^step take away
    what the zeros at the start pull m and v towards. With weight_decay, this is Adam with L2, and not AdamW.
    """

    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    needs = Needs(("m", "v"))

    def rule(self, p: Array, g: Array, slots: list[Array], scratch: Array, lr: float, step: int) -> None:
        (m, v), s = slots, scratch[0]
        m *= self.beta1
        m += np.multiply(g, 1 - self.beta1, out=s)
        _average_square(v, g, s, self.beta2)
        # With c = sqrt(c2): lr (m / c1) / (sqrt(v) / c + eps) = (lr c / c1) m / (sqrt(v) + c eps), one pass less.
        c = math.sqrt(1 - self.beta2**step)
        _subtract_scaled(p, m, v, s, lr * c / (1 - self.beta1**step), c * self.eps)


@dataclass(frozen=True)
class AdamW(Adam):
    """p <- (1 - lr weight_decay) p, then as Adam  (Loshchilov and Hutter 2019)."""

    weight_decay: float = 1e-2
    needs = Needs(("m", "v"), decoupled=True)
