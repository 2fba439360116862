"""What `dlcourse train` does: the bill first, then the training with its monitor, and then what it took."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from dlcourse import datasets, memory, models, optim, train, tree
from dlcourse.units import binary

MONITOR_SECONDS = 3.0  # between two lines of a log, if nothing is shown


def run(options: Any) -> int:
    """The whole command. -> its exit code. Raises what cannot be done, before anything is printed where that is known."""
    if options.checkpoint and Path(options.checkpoint, "latest.safetensors").exists() and not options.resume:
        raise FileExistsError(f"{options.checkpoint} holds a checkpoint: add --resume to go on, or name another folder")
    if options.resume and not options.checkpoint:
        raise ValueError("--resume needs --checkpoint FOLDER: the folder to go on from")
    if options.checkpoint_every is not None and not options.checkpoint:
        raise ValueError("--checkpoint-every needs --checkpoint FOLDER: the folder to write to")
    if options.json and options.monitor is not None and not options.monitor_log:
        raise ValueError("--monitor draws in the terminal, and --json prints one object alone: add --monitor-log FILE")
    log = memory.Log(options.monitor_log) if options.monitor_log else None
    data = _data(options)
    model = models.MODELS[options.network](classes=len(data.train.class_names))
    optimizer = getattr(optim, options.optimizer)(**({} if options.lr is None else {"lr": options.lr}))
    cut = {"batch_size": options.batch_size, "micro_batch": options.micro_batch, "workers": options.workers}
    in_shape = data.train.x.shape[1:]
    bill = memory.bill(model, in_shape, optimizer=optimizer, **cut)
    if not options.json:
        print(f"{options.network} on {options.data}: {len(data.train.x):,} images of {in_shape}, {options.optimizer}")
        print(bill, flush=True)

    sizes: list[int] = []  # anonymous and shared memory at the end of each 100 steps
    notes = {
        "rest": f"grads, saved, workspace (predicted: {binary(bill.peak - bill.persistent)} at most), Python's objects"
    }
    notes["data"] = "there before tracing began" if options.data == "digits" else "mapped from the disk"
    drawn = options.monitor is not None and not options.json
    view = memory.View(sys.stdout if drawn else None, log, notes=notes, untraced=("data",))
    watched: dict[str, Any] = {"on_whole": view, "on_end": view, "whole": options.monitor or MONITOR_SECONDS}
    watched["trees"] = {"data": [data.train.x, data.train.y]}

    def look(now: Any) -> None:
        if drawn or log:
            view.said = f"epoch {now.epoch}, step {now.step} of {now.steps}, loss {now.loss:.3f}"
            system(now)
        if now.step % 100 == 0 and (size := memory.resident_now().anonymous) is not None:
            sizes.append(size)

    started = time.perf_counter()
    with memory.traced_peak() as traced, memory.Monitor(0.02, **(watched if drawn or log else {})) as system:
        params = model.init(in_shape, np.random.default_rng(options.seed))
        history = train.fit(
            model, params, data.train, optimizer=optimizer, epochs=options.epochs, seed=options.seed, **cut,
            checkpoint=options.checkpoint, checkpoint_every=options.checkpoint_every, resume=options.resume,
            progress=not options.json and sys.stderr.isatty() and not (drawn and sys.stdout.isatty()), callbacks=[look],
        )  # fmt: skip
        result = train.evaluate(model, params, data.test, batch_size=options.micro_batch, workers=options.workers)
    seconds = time.perf_counter() - started
    anonymous = system.peaks.get("anonymous")
    if options.json:
        measured: dict[str, Any] = {"traced_peak": traced.peak, "resident_peak": memory.peak_since_start()}
        measured |= {"anonymous_peak_sampled": anonymous, "anonymous_each_100_steps": sizes}
        outcome: dict[str, Any] = {"test_accuracy": result.accuracy, "test_loss": result.loss, "seconds": seconds}
        outcome |= {"parameters": tree.count(params), "train_loss": history.column("loss")}
        print(json.dumps(outcome | measured | {"bill": bill.to_dict()}))
        return _closed(log)
    print(f"test accuracy  {result.accuracy:.4f}  (loss {result.loss:.4f}, {len(data.test.x):,} images)")
    print(f"time           {seconds:.1f} s, {_count(options.epochs, 'epoch')}, {_count(options.workers, 'worker')}")
    print(f"traced peak    {binary(traced.peak)}  (arrays and Python's objects; predicted {binary(bill.peak)})")
    print(f"resident peak  {binary(memory.peak_since_start())}  (the process since it began, pages of files included)")
    if anonymous is not None:
        print(
            f"  of these     {binary(anonymous)} anonymous  (sampled each {system.apart:.2g} s or less: a lower bound); the rest are"
        )
        print("               pages of files, such as the mapped data: the system can drop them at any time")
    if len(sizes) > 1:
        low, high = min(sizes), max(sizes)
        print(
            f"each 100 steps {binary(low)} to {binary(high)} anonymous, {len(sizes)} looks, apart by {binary(high - low)}"
        )
    return _closed(log)


def _closed(log: Any) -> int:
    if log is not None:
        log.close()  # raises OSError if a line could not be written
    return 0


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' if number != 1 else ''}"


def _data(options: Any) -> Any:
    """The data set by its name; large ones stay on disk."""
    if options.samples is not None and options.data != "shapes":
        raise ValueError(f"--samples is for --data shapes, which draws any number; {options.data} has its own number")
    if options.path is not None and options.data not in ("cifar10", "mnist"):
        raise ValueError(
            f"--path is for --data cifar10 and mnist, which can be read from an archive; got {options.data}"
        )
    if options.data == "shapes":
        return datasets.shapes(options.samples or 10_000, seed=options.seed, on_disk=True)
    if options.data in ("cifar10", "mnist"):
        return getattr(datasets, options.data)(path=options.path)
    return datasets.digits()
