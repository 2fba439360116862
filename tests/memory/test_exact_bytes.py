"""The bytes of the step of the story and of each kernel, as numbers: what makes one of them larger turns red here.

Traced peaks, beyond what was there before the call. The slack is Python's own objects, headers of arrays and such.
"""

import numpy as np
import pytest

from dlcourse import kernels, memory, models, optim
from dlcourse.memory.ledger import small_buffers
from dlcourse.train import gradients

KIB, MIB = 2**10, 2**20
SLACK = 16 * KIB
RNG = np.random.default_rng(0)
PAIR = {"kernel": (2, 2), "stride": (2, 2)}


def normal(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


X = normal(32, 32, 32, 32)  # 4 MiB
Y = np.maximum(X, 0)
POOLED, INDEX = kernels.max_pool2d(X, **PAIR)  # 1 MiB, 256 KiB
KEEP = kernels.dropout(X, rate=0.25, rng=np.random.default_rng(0))[1]
W, B = normal(3, 3, 32, 32), normal(32)
ROWS, A = normal(512, 1024), normal(1024, 512)  # 2 MiB each
C = normal(32)
_, MEAN, VAR = kernels.layer_norm(X, C, C, eps=1e-5)
BLOCK = 32 * 32 * 9 * 32 * 4 + 34 * 34 * 32 * 4  # the columns of one image, and its canvas

KERNELS = {
    "affine": (lambda: kernels.affine(ROWS, A, A[0]), 512 * 512 * 4),
    "affine_backward": (lambda: kernels.affine_backward(ROWS[:, :512], ROWS, A), (512 * 1024 + 1024 * 512) * 4),
    "affine_backward, no dx": (
        lambda: kernels.affine_backward(ROWS[:, :512], ROWS, A, need_dx=False),
        1024 * 512 * 4,
    ),
    "relu": (lambda: kernels.relu(X), 4 * MIB),
    "relu, in place": (lambda: kernels.relu(X, out=X), 0),
    "relu_backward": (lambda: kernels.relu_backward(X, Y), 5 * MIB),
    "relu_backward, in place": (lambda: kernels.relu_backward(X, Y, out=X), MIB),
    "leaky_relu": (lambda: kernels.leaky_relu(X, slope=0.1), 4 * MIB),
    "leaky_relu_backward": (lambda: kernels.leaky_relu_backward(X, Y, slope=0.1), 5 * MIB),
    "sigmoid": (lambda: kernels.sigmoid(X), 4 * MIB),
    "sigmoid_backward": (lambda: kernels.sigmoid_backward(X, Y), 4 * MIB),
    "tanh": (lambda: kernels.tanh(X), 4 * MIB),
    "tanh_backward": (lambda: kernels.tanh_backward(X, Y), 4 * MIB),
    "gelu": (lambda: kernels.gelu(X), 4 * MIB),
    "gelu_backward": (lambda: kernels.gelu_backward(X, X), 8 * MIB),
    "conv2d": (lambda: kernels.conv2d(X, W, B, padding=(1, 1)), 4 * MIB + BLOCK),
    "conv2d_backward": (lambda: kernels.conv2d_backward(X, X, W, padding=(1, 1)), 4 * MIB + BLOCK + 2 * W.nbytes),
    "conv2d_backward, no dx": (
        lambda: kernels.conv2d_backward(X, X, W, padding=(1, 1), need_dx=False),
        BLOCK + 2 * W.nbytes,
    ),
    "max_pool2d": (lambda: kernels.max_pool2d(X, **PAIR), MIB + 3 * 256 * KIB),
    "max_pool2d_backward": (
        lambda: kernels.max_pool2d_backward(POOLED, INDEX, in_hw=(32, 32), **PAIR),
        4 * MIB + 512 * KIB,
    ),
    "avg_pool2d": (lambda: kernels.avg_pool2d(X, **PAIR), MIB),
    "avg_pool2d_backward": (lambda: kernels.avg_pool2d_backward(POOLED, in_hw=(32, 32), **PAIR), 5 * MIB),
    "dropout": (lambda: kernels.dropout(X, rate=0.25, rng=np.random.default_rng(0)), 5 * MIB),
    "dropout_backward": (lambda: kernels.dropout_backward(X, KEEP, rate=0.25), 4 * MIB),
    "batch_norm": (lambda: kernels.batch_norm(X, C, C, eps=1e-5), 8 * MIB),
    "batch_norm_inference": (lambda: kernels.batch_norm_inference(X, C, C, C, C * C, eps=1e-5), 4 * MIB),
    "batch_norm_backward": (lambda: kernels.batch_norm_backward(X, X, C, C, C * C, eps=1e-5), 8 * MIB),
    "layer_norm_backward": (lambda: kernels.layer_norm_backward(X, X, C, MEAN, VAR, eps=1e-5), 8 * MIB + 2 * 128 * KIB),
    "layer_norm": (lambda: kernels.layer_norm(X, C, C, eps=1e-5), 8 * MIB + 2 * 128 * KIB),
}


def traced(call):
    """The peak of a second call: the first one makes what Python and NumPy keep for ever."""
    with small_buffers():
        call()
        with memory.traced_peak() as found:
            call()
    return found.peak


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_allocates_what_it_says_and_no_more(name):
    call, expected = KERNELS[name]
    assert 0 <= traced(call) - expected < SLACK


def test_every_kernel_is_weighed():
    public = {name for name, f in vars(kernels).items() if "out" in getattr(f, "__annotations__", {})}
    assert public == {name.split(",")[0] for name in KERNELS}


@pytest.mark.parametrize(
    ("micro_batch", "workers", "expected", "slack"),
    [
        (None, 1, 63_330_000, SLACK),  # 60.4 MiB
        (25, 1, 16_177_000, SLACK),  # 15.4 MiB
        (25, 2, 30_200_000, MIB),  # 28.8 MiB, where the two stand at their highest moment together
        (10, 2, 15_700_000, MIB),  # 15.0 MiB
    ],
)
def test_the_step_of_the_story_holds_as_much_as_it_did(micro_batch, workers, expected, slack):
    """Beyond the parameters and Adam's slots, 24.8 MiB."""
    model, optimizer = models.cifar_cnn(), optim.Adam()
    rng = np.random.default_rng(0)
    x, labels = rng.integers(0, 256, (100, 32, 32, 3), dtype=np.uint8), rng.integers(0, 10, 100)
    params = model.init(x.shape[1:], rng)
    slots = optimizer.init(params)

    def step():
        cut = {"micro_batch": micro_batch, "workers": workers}
        optimizer.update(params, gradients(model, params, x, labels, **cut)[1], slots)

    found = traced(step)
    assert found < expected + slack
    assert found > expected - slack or workers > 1
