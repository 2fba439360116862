"""PyTorch's side, run by another interpreter that has torch: it may not import this package. Same protocol as worker.py."""

import json
import resource
import sys
import time

import torch  # type: ignore[import-not-found]
from torch import nn


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


def main() -> None:
    side, case, threads = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    shape = (3, 32, 32) if case["network"] == "cifar_cnn" else (1, 8, 8)
    x = torch.randint(0, 256, (case["batch"], *shape), dtype=torch.uint8)
    labels = torch.randint(0, 10, (case["batch"],))
    model, loss = network(case["network"]), nn.CrossEntropyLoss()
    layout = torch.channels_last if side == "torch channels last" else torch.contiguous_format
    model, x = model.to(memory_format=layout), x.to(memory_format=layout)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def inputs() -> torch.Tensor:
        return ((x.float() / 255 - 0.5) / 0.25).to(memory_format=layout)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss(model(inputs()), labels).backward()
        optimizer.step()

    def inference() -> None:
        with torch.inference_mode():
            model(inputs())

    once = step if case["work"] == "step" else inference
    if case["work"] == "inference":
        model.eval()
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
