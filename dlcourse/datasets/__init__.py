"""The data sets of the course: real digits, shapes drawn here, CIFAR-10 and MNIST."""

from .batches import read_cifar10_batch
from .cifar import cifar10
from .drawn import shapes
from .idx import mnist
from .scans import digits
from .split import Dataset, Split
from .store import data_folder

__all__ = ["Dataset", "Split", "cifar10", "data_folder", "digits", "mnist", "read_cifar10_batch", "shapes"]
