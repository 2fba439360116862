import numpy as np


def standardized(pictures, mean, std):
    """(bytes / 255 − mean) / std.  pictures (N, H, W, C) uint8, mean and std (C,) float64 -> (N, H, W, C) float32."""
    y = pictures.astype(np.float32)
    y /= 255  # in place from here on, so float64 cannot come in
    y -= mean.astype(np.float32)
    y /= std.astype(np.float32)
    return y


check("01.4", standardized)
