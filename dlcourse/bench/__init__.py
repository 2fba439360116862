"""The benchmark: a training step and an inference, this package beside the textbook way and, where it is installed
elsewhere, PyTorch. Every side runs in a process of its own, in turn A B A B, with the same threads and shapes."""

from dlcourse.bench.cases import CASES, SIDES, Case
from dlcourse.bench.runner import Result, run, table

__all__ = ["CASES", "SIDES", "Case", "Result", "run", "table"]
