"""One side of the benchmark as a process: prints a JSON line when it is ready, runs the case once for each line it
reads, and prints what it took. The last line that it reads is "end": it answers with its peaks."""

import json
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from dlcourse import losses, memory, optim, train
from dlcourse.bench.cases import EPOCH_IMAGES, Case
from dlcourse.bench.runner import network
from dlcourse.bench.textbook import textbook
from dlcourse.datasets import Split
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
    x, labels = rng.integers(0, 256, (samples, *case.in_shape), dtype=np.uint8), rng.integers(0, 10, samples)
    params, optimizer = model.init(case.in_shape, rng), optim.Adam()
    slots = {} if case.work == "inference" else optimizer.init(params)
    pool = threads_of(workers).__enter__()  # kept from step to step, as `fit` keeps them

    batch = Batch(x, labels, None, micro_batch)

    def step(rows: Any = slice(None)) -> None:
        if ours:
            _, grads, _ = batch_gradients(model, params, batch, losses.softmax_cross_entropy, workers, pool)
        else:
            logits, saved = model.forward(params, as_input(x[rows], np.float32), train=True, rng=rng)
            _, dlogits = losses.softmax_cross_entropy(logits, labels[rows])
            _, grads = model.backward(params, saved, dlogits)
        optimizer.update(params, grads, slots)

    def inference() -> None:
        def one(index: int) -> None:
            model.forward(params, as_input(x[index * micro_batch : (index + 1) * micro_batch], np.float32))

        _on_threads(one, case.batch, micro_batch, workers)

    def epoch() -> None:
        if ours:
            how: dict[str, Any] = {"batch_size": case.batch, "micro_batch": micro_batch, "workers": workers}
            train.fit(model, params, Split(x, labels), optimizer=optimizer, **how, progress=False)
            return
        order = rng.permutation(samples)
        for start in range(0, samples, case.batch):
            step(order[start : start + case.batch])

    return {"step": step, "inference": inference, "epoch": epoch}[case.work]


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
    best = float("inf")

    def many(_: int) -> None:
        for _ in range(200):
            a @ b

    with one_blas_thread():
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
    ready: dict[str, Any] = {"rate": product_rate(threads)} if side == "dlcourse" else {}
    ready |= {"resident": memory.resident_now().total, "versions": f"NumPy {np.__version__}, {blas}"}
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
