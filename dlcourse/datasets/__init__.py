"""The data sets of the course: real digits, shapes drawn here, CIFAR-10 and MNIST."""

from .cifar10 import cifar10, read_cifar10_batch
from .digits import digits
from .mnist import mnist
from .shapes import shapes
from .split import Dataset, Split
from .store import data_folder

__all__ = ["Dataset", "Split", "cifar10", "data_folder", "digits", "mnist", "read_cifar10_batch", "shapes"]
