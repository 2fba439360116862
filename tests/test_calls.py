"""How much Python a training step runs: what a reader has to step through."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

import dlcourse
from dlcourse import layers as L
from dlcourse import losses, optim
from dlcourse.gradients import Batch
from dlcourse.model import Sequential
from dlcourse.train import train_step

PACKAGE = str(Path(dlcourse.__file__).parent)
# Python 3.12 runs a comprehension in its function's own frame: there are fewer calls than these, and not more.
CALLS, FUNCTIONS = 150, 55


def calls_of(function):
    """{(file, name): how often it was called}, the package's own Python functions, each piece of a generator a call."""
    found = Counter()

    def see(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            found[Path(code.co_filename).relative_to(PACKAGE).as_posix(), code.co_name] += 1

    sys.setprofile(see)
    try:
        function()
    finally:
        sys.setprofile(None)
    return found


def test_a_step_of_a_small_network_is_few_calls():
    model, optimizer = Sequential([L.Flatten(), L.Affine(16), L.ReLU(), L.Affine(10)]), optim.Adam()
    rng = np.random.default_rng(0)
    params = model.init((8, 8, 1), rng)
    slots = optimizer.init(params)
    batch = Batch(rng.integers(0, 256, (20, 8, 8, 1), dtype=np.uint8), rng.integers(0, 10, 20))

    def step():
        train_step(model, params, slots, batch, optimizer=optimizer, loss=losses.softmax_cross_entropy)

    step()  # what is made once: the list of BLAS's libraries
    found = calls_of(step)
    most = "\n".join(f"{n:3} {file} {name}" for (file, name), n in found.most_common())
    assert found.total() <= CALLS, f"{found.total()} calls of {len(found)} functions:\n{most}"
    assert len(found) <= FUNCTIONS, f"{found.total()} calls of {len(found)} functions:\n{most}"
