"""One side of the benchmark as a process: prints a JSON line when it is ready, runs the case once for each line it
reads, and prints what it took. The last line that it reads is "end": it answers with its peaks."""

import json
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from dlcourse import losses, memory, models, optim, train
from dlcourse.bench.cases import Case
from dlcourse.bench.textbook import textbook


def work(side: str, case: Case, threads: int) -> Callable[[], None]:
    """The case as a function without arguments. Data and parameters are made here, once."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (case.batch, *case.in_shape), dtype=np.uint8)
    labels = rng.integers(0, 10, case.batch)
    model, optimizer = models.NAMED[case.network](), optim.Adam()
    if side == "textbook":
        model = textbook(model)
    params = model.init(case.in_shape, rng)
    slots = optimizer.init(params)
    ours = side == "dlcourse"
    # Ours cuts the batch for its own threads; the textbook way has the whole batch, and the threads are BLAS's.
    cut = {"micro_batch": min(25, -(-case.batch // threads)), "workers": threads} if ours else {"micro_batch": None}

    def step() -> None:
        _, grads = train.gradients(model, params, x, labels, **cut)
        optimizer.update(params, grads, slots)

    def whole_step() -> None:
        logits, saved = model.forward(params, (x.astype(np.float32) / 255 - 0.5) / 0.25, train=True, rng=rng)
        _, dlogits = losses.softmax_cross_entropy(logits, labels)
        _, grads = model.backward(params, saved, dlogits)
        optimizer.update(params, grads, slots)

    def inference() -> None:
        train.evaluate(
            model, params, SimpleNamespace(x=x, y=labels), batch_size=cut["micro_batch"] or case.batch,
            workers=threads if ours else 1,
        )  # fmt: skip

    def whole_inference() -> None:
        model.forward(params, (x.astype(np.float32) / 255 - 0.5) / 0.25)

    if case.work == "step":
        return step if ours else whole_step
    return inference if ours else whole_inference


def product_rate(threads: int) -> float:
    """Floating-point operations a second of a matrix product like those of a convolution, on all threads together."""
    a, b = np.ones((1024, 288), np.float32), np.ones((288, 64), np.float32)
    with threadpool_limits(1, "blas"):

        def many(_: int) -> None:
            for _ in range(200):
                a @ b

        from dlcourse.workers import in_order

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
    ready = {"resident": memory.resident().total, "versions": f"NumPy {np.__version__}, {blas}"}
    if side == "dlcourse":
        ready["rate"] = product_rate(threads)
        ready["resident"] = memory.resident().total
    with threadpool_limits(threads, "blas"):
        print(json.dumps(ready), flush=True)
        for line in sys.stdin:
            if line.strip() == "end":
                break
            started = time.perf_counter()
            once()
            print(json.dumps({"seconds": time.perf_counter() - started}), flush=True)
        resident = memory.peak_resident()
        with memory.traced_peak() as traced:
            once()
    print(json.dumps({"resident": resident, "traced": traced.peak}), flush=True)


if __name__ == "__main__":
    main()
