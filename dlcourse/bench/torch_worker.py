"""PyTorch's side, run by another interpreter that has torch: it may not import this package. Same protocol as worker.py."""

import json
import resource
import sys
import time
from collections.abc import Callable

import torch  # type: ignore[import-not-found]
from torch import nn

LAYERS = {  # name: (what makes it, shape of one input)
    "conv2d 3 to 32": (lambda: nn.Conv2d(3, 32, 3, padding=1), (3, 32, 32)),
    "conv2d 32 to 32": (lambda: nn.Conv2d(32, 32, 3, padding=1), (32, 32, 32)),
    "conv2d 32 to 64": (lambda: nn.Conv2d(32, 64, 3, padding=1), (32, 16, 16)),
    "conv2d 64 to 64": (lambda: nn.Conv2d(64, 64, 3, padding=1), (64, 16, 16)),
    "relu": (nn.ReLU, (32, 32, 32)),
    "max pooling": (lambda: nn.MaxPool2d(2), (32, 32, 32)),
    "dropout": (lambda: nn.Dropout(0.25), (32, 16, 16)),
    "batch norm": (lambda: nn.BatchNorm2d(32), (32, 32, 32)),
    "affine 4096 to 512": (lambda: nn.Linear(4096, 512), (4096,)),
}


def network(name: str) -> nn.Sequential:
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    first = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU()]
    second = [nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()]
    pool = [nn.MaxPool2d(2), nn.Dropout(0.25)]
    last = [nn.Flatten(), nn.Linear(4096, 512), nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 10)]
    return nn.Sequential(*first, *pool, *second, *pool, *last)


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def in_layout(tensor: torch.Tensor, layout: torch.memory_format) -> torch.Tensor:
    return tensor.to(memory_format=layout) if tensor.ndim == 4 else tensor


def layer(case: dict, layout: torch.memory_format) -> Callable[[], None]:
    """Forward and backward of a layer alone, its input's gradient too."""
    make, shape = LAYERS[case["network"]]
    module = make().to(memory_format=layout)
    x = in_layout(torch.randn(case["batch"], *shape), layout).requires_grad_()
    dy = in_layout(torch.randn(module(x).shape), layout)

    def once() -> None:
        x.grad = None
        module.zero_grad(set_to_none=True)
        module(x).backward(dy)

    return once


def whole(case: dict, layout: torch.memory_format) -> Callable[[], None]:
    """A step, an inference or an epoch of a network."""
    shape = (3, 32, 32) if case["network"] == "cifar_cnn" else (1, 8, 8)
    samples = 50_000 if case["work"] == "epoch" else case["batch"]
    x = in_layout(torch.randint(0, 256, (samples, *shape), dtype=torch.uint8), layout)
    labels = torch.randint(0, 10, (samples,))
    model, loss = network(case["network"]).to(memory_format=layout), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def inputs(x: torch.Tensor) -> torch.Tensor:
        return in_layout((x.float() / 255 - 0.5) / 0.25, layout)

    def step(x: torch.Tensor = x, labels: torch.Tensor = labels) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss(model(inputs(x)), labels).backward()
        optimizer.step()

    def inference() -> None:
        with torch.inference_mode():
            model(inputs(x))

    def epoch() -> None:
        for rows in torch.randperm(samples).split(case["batch"]):
            step(x[rows], labels[rows])

    if case["work"] == "inference":
        model.eval()
    return {"step": step, "inference": inference, "epoch": epoch}[case["work"]]


def main() -> None:
    side, case, threads = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    layout = torch.channels_last if side == "torch channels last" else torch.contiguous_format
    once = layer(case, layout) if case["work"] == "layer" else whole(case, layout)
    print(json.dumps({"resident": resident(), "versions": f"PyTorch {torch.__version__}"}), flush=True)
    for line in sys.stdin:
        if line.strip() == "end":
            break
        started = time.perf_counter()
        once()
        print(json.dumps({"seconds": time.perf_counter() - started}), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"resident": peak, "traced": None}), flush=True)


if __name__ == "__main__":
    main()
