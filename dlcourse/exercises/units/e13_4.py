"""13.4  Take a record apart."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

parts = "config", "params", "saved", "slots"
hints = """
- Go through the entries once. Is it an array? If not, it is configuration.
- An array named W or b is a parameter; m, v or velocity belongs to the optimizer; each other array is for this step only.
- Four empty dictionaries; for each entry choose one of them, by isinstance(value, np.ndarray) first and then by name.
"""


@solution
def taken_apart(record):
    """{name: number, text or array} -> config, params, saved, slots: four dictionaries."""
    config, params, saved, slots = {}, {}, {}, {}
    for name, value in record.items():
        if not isinstance(value, np.ndarray):
            config[name] = value
        elif name in ("W", "b"):
            params[name] = value
        elif name in ("m", "v", "velocity"):
            slots[name] = value
        else:  # what forward kept and what backward made: gone when the step is over
            saved[name] = value
    return config, params, saved, slots


def moved(record, start, end, name):
    """The right answer with the entry `name` put from one part into another."""
    four = taken_apart(record)
    if name in four[start]:
        four[end][name] = four[start].pop(name)
    return four


@wrong
def gradients_are_parameters(record):
    """Your params hold the gradients. They are as large as the parameters, but they live for one step: saved."""
    config, params, saved, slots = taken_apart(record)
    gradients = {name: saved.pop(name) for name in list(saved) if name in ("dW", "db")}
    return config, params | gradients, saved, slots


@wrong
def velocity_for_one_step(record):
    """Your velocity is in saved. It has to live from step to step, or momentum starts anew each time: slots."""
    return moved(record, 3, 2, "velocity")


@wrong
def arrays_in_config(record):
    """Your config holds an array. Configuration is numbers and text; one array in it, and each copy of it keeps that
    array alive."""
    return moved(record, 2, 0, "columns")


@wrong
def numbers_in_params(record):
    """You put numbers among the parameters: those that are not learned, such as stride or rate, are configuration."""
    config, params, saved, slots = taken_apart(record)
    return {}, config | params, saved, slots


@wrong
def one_dictionary(record):
    """You hand back the whole record as what is saved. Then all of it lives as long as its longest part."""
    config, params, _, slots = taken_apart(record)
    return config, params, dict(record), slots


@wrong
def columns_dropped(record):
    """An entry is missing. Each goes into exactly one of the four; what to let go is decided later, by lifetime."""
    config, params, saved, slots = taken_apart(record)
    return config, params, {name: value for name, value in saved.items() if name in ("x", "y")}, slots


def no_slots(record):
    config, params, saved, slots = taken_apart(record)
    return config, params, saved | slots, {}


def by_size(record):
    config, params, saved, slots = taken_apart(record)
    return config, {"W": params["W"]} if "W" in params else {}, saved, slots


def two(record):
    return taken_apart(record)[:2]


also_wrong = no_slots, by_size, two


def inputs(rng):
    one, two_rows = np.ones(3), np.ones((2, 3))
    conv = {"kind": "conv", "filters": 3, "W": two_rows, "b": one, "x": two_rows + 1, "columns": two_rows + 2}
    yield (
        "a convolution after backward",
        (conv | {"y": one + 1, "dW": two_rows + 3, "db": one + 2, "velocity": two_rows * 0},),
    )
    yield "ReLU: nothing to learn", ({"kind": "relu", "x": one, "y": one + 5},)
    yield "an affine layer with Adam", ({"width": 3, "rate": 0.1, "W": two_rows, "b": one, "m": one * 0, "v": one * 2},)
    yield "only configuration", ({"kind": "flatten"},)
