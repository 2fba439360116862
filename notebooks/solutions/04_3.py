import numpy as np


def cross_entropy(logits, labels):
    """logits (N, K), labels (N,) whole numbers -> mean loss, dlogits (N, K)."""
    z = logits - logits.max(axis=1, keepdims=True)
    rows = np.arange(len(z))
    right = z[rows, labels]  # taken out before z is overwritten
    np.exp(z, out=z)
    s = z.sum(axis=1, keepdims=True)
    loss = (np.log(s[:, 0]) - right).mean()  # never the log of a probability
    z /= s  # the softmax
    z[rows, labels] -= 1
    z /= len(z)  # the loss is a mean
    return float(loss), z


check("04.3", cross_entropy)
