"""The data sets of the course: real digits, shapes drawn here, CIFAR-10 and MNIST."""

from .batches import read_cifar10_batch
from .drawn import shapes
from .scans import digits
from .split import Dataset, Split

__all__ = ["Dataset", "Split", "digits", "read_cifar10_batch", "shapes"]
