import numpy as np


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


check("13.4", taken_apart)
