"""01.4  From bytes to numbers around 0."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- `pictures / 255` is float64. And `mean` and `std` are float64 arrays: where they meet a float32 array, the result is
  float64, unless it is written in place.
- The result in float32 has to be made. Make it by `astype`, and do all three steps in place.
- `y = pictures.astype(np.float32)`, `y /= 255`, `y -= mean.astype(np.float32)`, and the same for `std`.
"""
costs = (
    (2.7, "float64 on the way, such as `pictures / 255`, or three arrays of the result's size at one moment"),
    (1.7, "two arrays of the size of the result at one moment; work in place after `astype`"),
)


@solution
def standardized(pictures, mean, std):
    """(bytes / 255 − mean) / std.  pictures (N, H, W, C) uint8, mean and std (C,) float64 -> (N, H, W, C) float32."""
    y = pictures.astype(np.float32)
    y /= 255  # in place from here on, so float64 cannot come in
    y -= mean.astype(np.float32)
    y /= std.astype(np.float32)
    return y


@wrong
def not_divided(pictures, mean, std):
    """The bytes were not divided by 255. `mean` and `std` speak of numbers between 0 and 1."""
    return ((pictures.astype(np.float32) - mean) / std).astype(np.float32)


@wrong
def mean_after_std(pictures, mean, std):
    """You divide by std first and subtract the mean then. The mean is one of the numbers before that division: subtract
    it first."""
    return (pictures / 255 / std - mean).astype(np.float32)


@wrong
def own_mean(pictures, mean, std):
    """You compute mean and std from these pictures. They are arguments: they come from the training set, and test
    pictures must be treated by the same numbers."""
    x = pictures / 255
    return ((x - x.mean(axis=(0, 1, 2))) / x.std(axis=(0, 1, 2))).astype(np.float32)


@wrong
def divided_as_bytes(pictures, mean, std):
    """`//` divides whole numbers and throws away what is behind the point: every byte below 255 becomes 0."""
    return ((pictures // 255 - mean) / std).astype(np.float32)


@wrong
def not_by_std(pictures, mean, std):
    """You subtract the mean and do not divide by std."""
    return (pictures / 255 - mean).astype(np.float32)


@wrong
def only_by_255(pictures, mean, std):
    """You divide by 255 and stop. The mean is to be subtracted then, and the rest divided by std."""
    return (pictures / 255).astype(np.float32)


also_wrong = (
    lambda pictures, mean, std: (pictures / 255 - mean) / std,
    lambda pictures, mean, std: ((pictures / 255 - mean) * std).astype(np.float32),
)


def inputs(rng):
    def draw(*shape):
        channels = shape[-1]
        pictures = rng.integers(0, 256, size=shape, dtype=np.uint8)
        return pictures, rng.uniform(0.4, 0.6, channels), rng.uniform(0.2, 0.3, channels)

    yield "2 colour pictures of 3 × 4", draw(2, 3, 4, 3)
    yield "one grey picture", draw(1, 5, 5, 1)
    yield "3 pictures of 3 × 3 with 3 channels", draw(3, 3, 3, 3)
    black_and_white = np.array([0, 255, 255, 0], np.uint8).reshape(1, 2, 2, 1)
    yield "black and white only: bytes 0 and 255", (black_and_white, np.array([0.5]), np.array([0.25]))


def large(rng):
    pictures = rng.integers(0, 256, size=(300, 32, 32, 3), dtype=np.uint8)
    return pictures, np.array([0.49, 0.48, 0.45]), np.array([0.25, 0.24, 0.26])
