"""dlcourse: deep learning from nothing in NumPy, with the memory bill of every step.

Importing the package loads NumPy and nothing heavy: scikit-learn, matplotlib, ipywidgets and pooch are imported by
the functions that use them.
"""

__version__ = "0.1.0"


def load_ipython_extension(shell: object) -> None:
    """`%load_ext dlcourse`: the magics %peak and %%peak."""
    from dlcourse.memory.meter import register

    register(shell)
