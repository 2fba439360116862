"""A short training of a small network on images like digits."""

import functools

import numpy as np
from helpers import blobs

from dlcourse import layers as L
from dlcourse import optim
from dlcourse.model import Sequential
from dlcourse.train import fit

NET = Sequential([L.Flatten(), L.Affine(16), L.ReLU(), L.Affine(10)])
DATA, TEST = blobs(250), blobs(70, seed=1)

quiet = functools.partial(fit, progress=False)


def new(model=NET, in_shape=(8, 8, 1), dtype=np.float32):
    return model.init(in_shape, rng=np.random.default_rng(0), dtype=dtype)


def run(data=DATA, model=NET, params=None, **options):
    """-> params, history of a short training."""
    params = new(model) if params is None else params
    options = {"optimizer": optim.SGD(lr=0.05), "epochs": 2, "batch_size": 100} | options
    return params, quiet(model, params, data, **options)
