"""dlcourse: deep learning from nothing in NumPy, with the memory bill of every step.

Importing the package loads NumPy and nothing heavy: scikit-learn, matplotlib, ipywidgets and pooch are imported by
the functions that use them.
"""

__version__ = "0.1.0"
