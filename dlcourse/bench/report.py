"""What `dlcourse bench` prints, as text while it measures or as one JSON object at the end."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dlcourse.bench import cases as all_cases
from dlcourse.bench import frontier as frontiers
from dlcourse.bench import growth as growths
from dlcourse.bench import looks as the_looks
from dlcourse.bench import runner


def cases(options: Any) -> None:
    """Measure the cases with `options.only` in their names. Raises ValueError if there is none, and FileNotFoundError,
    before anything is measured, if the picture cannot be written."""
    if options.picture and not os.access(Path(options.picture).resolve().parent, os.W_OK):
        raise FileNotFoundError(f"--picture {options.picture}: its folder is not there, or cannot be written")
    chosen = [case for case in all_cases.CASES if options.only is None or options.only in str(case)]
    if not chosen:
        there = "; ".join(map(str, all_cases.CASES))
        raise ValueError(f"no case has {options.only!r} in its name; there are: {there}")
    measured = []
    setting = {"threads": options.threads, "rounds": options.rounds}
    for results in runner.run(chosen, **setting, torch_python=options.torch_python):
        if not options.json:
            print(runner.table(results), end="\n\n", flush=True)
        measured.append(results)
    versions = dict.fromkeys(one.versions for results in measured for one in results)
    if options.json:
        rows = [one.to_dict() for results in measured for one in results]
        print(json.dumps(setting | {"versions": list(versions), "results": rows}))
    else:
        print("ratio: seconds over those of dlcourse. peak, grown: resident, of the process and since its first run.")
        print("traced: requested by Python and NumPy. floor: the products alone, at the rate of this machine's BLAS.")
        print(f"{options.threads} threads, {options.rounds} rounds in turn; {'; '.join(versions)}")
        if options.torch_python is None:
            print("not run: torch, torch channels last (give --torch-python PATH, an interpreter that has PyTorch)")
    if options.picture:
        from dlcourse import viz

        Path(options.picture).write_bytes(viz.seconds_against_bytes(measured).png())


def growth(options: Any) -> None:
    """Measure how seconds and bytes of a step grow. Raises ValueError if a picture is asked for: there is none."""
    if options.picture:
        raise ValueError("--picture draws seconds against bytes of the cases, not of --growth")
    measured: list[Any] = []
    if not options.json:
        batch, side, channels, depth = growths.BATCH, growths.SIDE, growths.CHANNELS, growths.DEPTH
        print("A stack of 3x3 convolutions with ReLU, and an affine layer; forward, backward and Adam on one thread.")
        print(f"What does not grow: batch {batch}, {side} x {side} pixels, {channels} channels, {depth} layers.")
        print("Workers are threads of their own, for a batch of 100 in micro-batches of 25.\n")
    for axis, sizes in growths.grow(options.rounds):
        measured += map(asdict, sizes)
        if not options.json:
            print(growths.growth_table(axis, sizes), end="\n\n", flush=True)
    if options.json:
        print(json.dumps({"rounds": options.rounds, "growth": measured}))


def looks(options: Any) -> None:
    """Measure what the monitor costs. Raises ValueError if a picture is asked for: there is none."""
    if options.picture:
        raise ValueError("--picture draws seconds against bytes of the cases, not of --monitor")
    found = the_looks.looks()
    if options.json:
        print(json.dumps(found))
        return
    print("cifar_cnn, batch 100 in micro-batches of 25, with all that `dlcourse train --monitor 0.5` looks at:")
    print(
        f"{found['observations']} observations and {found['samples']} samples in {found['seconds']:.1f} s, {found['workers']} workers"
    )
    print(f"a sample took {found['mean_ms']:.2f} ms of processor time, the dearest {found['most_ms']:.2f} ms")
    print(f"all of them took {found['per_cent']:.2f} % of a processor's time")


def frontier(options: Any) -> None:
    """Measure the techniques with `options.only` in their names, beside plain Adam. Raises ValueError for a picture: there is
    none."""
    if options.picture or options.growth or options.monitor:
        raise ValueError("bench frontier is a table: it has no --picture, --growth or --monitor")
    plain, *others = frontiers.TECHNIQUES
    chosen = [plain, *(one for one in others if options.only is None or options.only in one.name)]
    points = list(frontiers.measure(chosen, rounds=options.rounds, with_accuracy=options.accuracy))
    print(json.dumps(frontiers.as_plain(points), indent=1) if options.json else frontiers.table(points))
