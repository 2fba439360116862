import numpy as np


def conv_backward(dy, x, W, stride=1, padding=0):
    kh, kw, channels, filters = W.shape
    n, h, w, _ = x.shape
    inside = slice(padding, padding + h), slice(padding, padding + w)
    dx, dW = np.empty_like(x), np.zeros_like(W)
    padded = np.zeros((h + 2 * padding, w + 2 * padding, channels), x.dtype)
    dpadded = np.empty_like(padded)
    for image in range(n):
        padded[inside] = x[image]
        dpadded[:] = 0
        rows = dy[image].reshape(-1, filters)
        for i in range(kh):
            for j in range(kw):
                # the pixels that W[i, j] meets: forward reads them, backward adds to them
                met = (slice(i, i + stride * dy.shape[1], stride), slice(j, j + stride * dy.shape[2], stride))
                dW[i, j] += padded[met].reshape(-1, channels).T @ rows
                dpadded[met] += dy[image] @ W[i, j].T
        dx[image] = dpadded[inside]  # without the border
    return dx, dW, dy.sum(axis=(0, 1, 2))


check("05.5", conv_backward)
