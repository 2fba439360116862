"""What the monitor of `dlcourse train --monitor 0.5` costs beside a training of the story's network on four workers."""

import io
import time

import numpy as np

from dlcourse import datasets, memory, models, optim, train

EVERY, WORKERS, SECONDS = 0.5, 4, 10.0


def looks(seconds: float | None = None) -> dict[str, float]:
    """-> a training of so many seconds, watched: its observations, their milliseconds of processor time (the mean and the
    most of all samples, drawing included), and the per cent of a processor's time that all of them took."""
    model, data = models.cifar_cnn(), datasets.shapes(1_000, seed=0).train
    params = model.init((32, 32, 3), np.random.default_rng(0))
    view = memory.View(io.StringIO(), untraced=("data",))
    seen: list[memory.Sample] = []

    def shown(monitor: memory.Monitor) -> None:
        view(monitor)
        seen.append(monitor.samples[-1])

    seconds = SECONDS if seconds is None else seconds
    began = time.perf_counter()
    with (
        memory.traced_peak(),
        memory.Monitor(0.02, {"data": [data.x, data.y]}, name="bench", on_whole=shown, whole=EVERY) as monitor,
    ):
        train.fit(
            model, params, data, optimizer=optim.Adam(), micro_batch=25, workers=WORKERS, epochs=1_000, progress=False,
            callbacks=[monitor, lambda _: time.perf_counter() - began > seconds],
        )  # fmt: skip
    took = time.perf_counter() - began
    return {
        "every": EVERY,
        "workers": WORKERS,
        "seconds": took,
        "observations": len(seen),
        "samples": monitor.count,
        "mean_ms": 1e3 * monitor.cost / max(1, monitor.count),
        "most_ms": 1e3 * monitor.dearest,
        "per_cent": 100 * monitor.cost / took,
    }
