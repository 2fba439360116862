"""The progress bar of training, in a notebook and in a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm.auto import tqdm


@contextmanager
def progress_bar(steps: int, done: int, *, shown: bool) -> Iterator[Callable[[Any], None]]:
    """A tqdm bar over steps; gives a callback of `fit`, which moves it and shows the last loss and the last validation."""
    with tqdm(total=steps, initial=min(done, steps), unit="step", mininterval=0.5, disable=not shown) as bar:

        def show(now: Any) -> None:
            seen = {"loss": f"{now.loss:.3f}"}
            if now.history.epochs and now.history.epochs[-1].get("val_accuracy") is not None:
                seen["validation accuracy"] = f"{now.history.epochs[-1]['val_accuracy']:.1%}"
            bar.set_postfix(seen, refresh=False)
            bar.update()

        yield show
