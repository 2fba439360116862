"""One side of the benchmark as a process: prints a JSON line when it is ready, runs the case once for each line it
reads, and prints what it took. The last line that it reads is "end": it answers with its peaks."""

import json
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from dlcourse import losses, memory, optim, train
from dlcourse.bench.cases import EPOCH_IMAGES, Case
from dlcourse.bench.runner import network
from dlcourse.bench.textbook import textbook
from dlcourse.gradients import Batch, batch_gradients
from dlcourse.inputs import as_input
from dlcourse.model import Sequential
from dlcourse.workers import in_order, one_blas_thread
from dlcourse.workers import threads as threads_of


def work(side: str, case: Case, threads: int) -> Callable[[], None]:
    """The case as a function without arguments. Data and parameters are made here, once."""
    ours = side == "dlcourse"
    # Ours cuts the batch for its own threads. The textbook way has the whole batch, and the threads are BLAS's; so has ours
    # where there is too little work for threads.
    cut = ours and case.network != "mlp"
    micro_batch = min(25, -(-case.batch // threads)) if cut else case.batch
    workers = threads if cut else 1
    model = network(case) if ours else textbook(network(case))
    if case.work == "layer":
        return _layer(model, case, micro_batch, workers)
    rng = np.random.default_rng(0)
    samples = EPOCH_IMAGES if case.work == "epoch" else case.batch
    data = SimpleNamespace(
        x=rng.integers(0, 256, (samples, *case.in_shape), dtype=np.uint8), y=rng.integers(0, 10, samples)
    )
    params, optimizer = model.init(case.in_shape, rng), optim.Adam()

    def inference() -> None:
        def one(index: int) -> None:
            model.forward(params, as_input(data.x[index * micro_batch : (index + 1) * micro_batch], np.float32))

        _on_threads(one, case.batch, micro_batch, workers)

    def whole_inference() -> None:
        model.forward(params, _floats(data.x))

    def epoch() -> None:
        cut: dict[str, Any] = {"batch_size": case.batch, "micro_batch": micro_batch, "workers": workers}
        train.fit(model, params, data, optimizer=optimizer, **cut, progress=False)

    def whole_epoch() -> None:
        slots, order = optimizer.init(params), rng.permutation(samples)
        for start in range(0, samples, case.batch):
            rows = order[start : start + case.batch]
            whole_step(_floats(data.x[rows]), data.y[rows], slots)

    pool = threads_of(workers).__enter__()  # kept from step to step, as `fit` keeps them
    batch = Batch(data.x, data.y, None, micro_batch)

    def step() -> None:
        _, grads, _ = batch_gradients(model, params, batch, losses.softmax_cross_entropy, workers, pool)
        optimizer.update(params, grads, slots)

    def whole_step(x: np.ndarray, labels: np.ndarray, slots: Any) -> None:
        logits, saved = model.forward(params, x, train=True, rng=rng)
        _, dlogits = losses.softmax_cross_entropy(logits, labels)
        _, grads = model.backward(params, saved, dlogits)
        optimizer.update(params, grads, slots)

    if case.work == "inference":
        return inference if ours else whole_inference
    if case.work == "epoch":
        return epoch if ours else whole_epoch
    slots = optimizer.init(params)
    return step if ours else lambda: whole_step(_floats(data.x), data.y, slots)


def _floats(x: np.ndarray) -> np.ndarray:
    return (x.astype(np.float32) / 255 - 0.5) / 0.25


def _layer(model: Sequential, case: Case, micro_batch: int, workers: int) -> Callable[[], None]:
    """Forward and backward of a layer alone, its input's gradient too."""
    rng = np.random.default_rng(0)
    params = model.init(case.in_shape, rng)
    x = rng.standard_normal((case.batch, *case.in_shape), dtype=np.float32)
    dy = rng.standard_normal((case.batch, *model.out_shape(case.in_shape)), dtype=np.float32)

    def one(index: int) -> None:
        part = slice(index * micro_batch, (index + 1) * micro_batch)
        _, saved = model.forward(params, x[part], train=True, rng=np.random.default_rng(index))
        model.backward(params, saved, dy[part])

    return lambda: _on_threads(one, case.batch, micro_batch, workers)


def _on_threads(one: Callable[[int], None], batch: int, micro_batch: int, workers: int) -> None:
    with one_blas_thread() if workers > 1 else nullcontext():
        for _ in in_order(one, -(-batch // micro_batch), workers):
            pass


def product_rate(threads: int) -> float:
    """Floating-point operations a second of a matrix product like those of a convolution, on all threads together."""
    a, b = np.ones((1024, 288), np.float32), np.ones((288, 64), np.float32)
    with threadpool_limits(1, "blas"):

        def many(_: int) -> None:
            for _ in range(200):
                a @ b

        best = float("inf")
        for _ in range(5):
            started = time.perf_counter()
            list(in_order(many, threads, threads))
            best = min(best, time.perf_counter() - started)
    return threads * 200 * 2 * a.size * b.shape[1] / best


def main() -> None:
    """Serve one case: arguments side, case as JSON, threads."""
    side, case, threads = sys.argv[1], Case(**json.loads(sys.argv[2])), int(sys.argv[3])
    once = work(side, case, threads)
    blas = ", ".join(
        f"{one['internal_api']} {one['version']} with its kernels for {one.get('architecture', 'a processor not told')}"
        for one in threadpool_info()
        if one["user_api"] == "blas"
    )
    ready = {"resident": memory.resident_now().total, "versions": f"NumPy {np.__version__}, {blas}"}
    if side == "dlcourse":
        ready["rate"] = product_rate(threads)
        ready["resident"] = memory.resident_now().total
    with threadpool_limits(threads, "blas"):
        print(json.dumps(ready), flush=True)
        for line in sys.stdin:
            if line.strip() == "end":
                break
            started = time.perf_counter()
            once()
            print(json.dumps({"seconds": time.perf_counter() - started}), flush=True)
        resident, traced = memory.peak_since_start(), None
        if case.work != "epoch":  # its bytes are a step's
            with memory.traced_peak() as peak:
                once()
            traced = peak.peak
    print(json.dumps({"resident": resident, "traced": traced}), flush=True)


if __name__ == "__main__":
    main()
