"""04.3  Cross-entropy and its gradient, in one."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

parts = "loss", "dlogits"
rtol = 1e-05
hints = """
- The loss of a sample is log(sum of exp(z)) − z[label], where z is its row less the row's maximum.
- z[np.arange(N), labels] takes the score of its label from each row.
- The gradient is softmax(z), less 1 in the place of the label, all divided by N: the loss is a mean.
- right = z[rows, labels]; np.exp(z, out=z); s = z.sum(axis=1, keepdims=True); loss: mean of log(s[:, 0]) − right.
"""
costs = (
    (2.5, "three arrays of this size or more at once: z, exp(z), p; one is enough, work on in z"),
    (1.5, "two arrays of this size at once; take the scores of the labels out first, then work on in z"),
)


@solution
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


def softmax(logits):
    y = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return y / y.sum(axis=-1, keepdims=True)


def scaled(logits, labels, of_loss, of_gradient):
    loss, dlogits = cross_entropy(logits, labels)
    return loss * of_loss, dlogits * of_gradient


def log_of_p(logits, labels, least, *, times_target=False):
    t = np.eye(logits.shape[1])[labels]
    logs = np.log(np.maximum(softmax(logits), least))
    losses = -(t * logs) if times_target else -logs[t == 1]
    return float(losses.sum() / len(logits)), cross_entropy(logits, labels)[1]


@wrong
def sums(logits, labels):
    """Your loss and your gradient are sums over the batch. The loss is a mean: divide both by N."""
    return scaled(logits, labels, len(labels), len(labels))


@wrong
def with_eps(logits, labels):
    """You keep the probability away from 0 before the log. So no loss is above 27.6, and for [1000, 0, −1000] with
    label 1 it should be 1000. log(sum of exp) − score needs no such limit."""
    return log_of_p(logits, labels, 1e-12)


@wrong
def log_of_probability(logits, labels):
    """You take the log of the probability. For [1000, 0, −1000] with label 1 it was rounded to 0, and your loss is
    infinite; it should be 1000. Use log(sum of exp) − score."""
    return log_of_p(logits, labels, 0.0)


@wrong
def not_shifted(logits, labels):
    """exp(1000) is infinite, and NaN follows. Subtract each row's maximum: in the loss it drops out again."""
    rows = np.arange(len(logits))
    e = np.exp(logits)
    s = e.sum(axis=1, keepdims=True)
    p = e / s
    p[rows, labels] -= 1
    return float((np.log(s[:, 0]) - logits[rows, labels]).mean()), p / len(p)


@wrong
def one_not_divided(logits, labels):
    """You subtract 1 after dividing by N. It is (p − t)/N: subtract 1 first, then divide all of it."""
    dlogits = softmax(logits) / len(logits)
    dlogits[np.arange(len(logits)), labels] -= 1
    return cross_entropy(logits, labels)[0], dlogits


def of_scores(z, labels):
    """The loss, from scores as they are."""
    return float((np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(z)), labels]).mean())


@wrong
def label_not_subtracted(logits, labels):
    """Your gradient is the softmax, divided by N. In the place of the label 1 is to be subtracted before."""
    return cross_entropy(logits, labels)[0], softmax(logits) / len(logits)


also_wrong = (
    lambda logits, labels: scaled(logits, labels, 1, len(labels)),
    lambda logits, labels: scaled(logits, labels, 1, 1 / logits.shape[1]),
    lambda logits, labels: log_of_p(logits, labels, 0.0, times_target=True),
    lambda logits, labels: scaled(logits, labels, 1, -1),
    lambda z, labels: ((both := cross_entropy(z, labels))[0] - float(z.max(axis=1).mean()), both[1]),
    lambda z, labels: ((both := cross_entropy(z, labels))[0], both[1].astype(np.float64)),
    lambda z, labels: (cross_entropy(z, labels)[0], (softmax(z) - np.isin(np.arange(z.shape[1]), labels)) / len(z)),
    lambda z, labels: (of_scores(z - z.max(), labels), softmax(z - z.max()) / len(z)),
    lambda z, labels: (of_scores(z, labels), cross_entropy(z, labels)[1]),
)


def inputs(rng):
    yield "one sample, equal scores", (np.zeros((1, 10)), np.array([3]))
    yield "[1000, 0, -1000], label 1", (np.array([[1000.0, 0, -1000]]), np.array([1]))
    yield "4 samples, 3 classes", (rng.standard_normal((4, 3)), np.array([0, 2, 2, 1]))
    yield "3 samples, 3 classes", (3 * rng.standard_normal((3, 3)), np.array([2, 0, 1]))
    yield "the same label five times", (rng.standard_normal((5, 4)), np.array([1, 1, 1, 1, 1]))
    far = np.array([[1000.0, 0, 0], [-1000, -1001, -1002], [0, 0, 0]], np.float32)
    yield "rows far apart, float32", (far, np.array([0, 2, 1]))
    yield "labels in uint8", (rng.standard_normal((6, 10), dtype=np.float32), rng.integers(0, 10, 6).astype(np.uint8))


def large(rng):
    return rng.standard_normal((512, 1024), dtype=np.float32), rng.integers(0, 1024, 512)
