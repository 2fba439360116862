"""The progress bar of training, in a notebook and in a terminal."""

from typing import Any

from tqdm.auto import tqdm


class progress_bar:
    """A tqdm bar over steps that shows the last loss and the last validation; nothing at all where not `shown`."""

    def __init__(self, steps: int, done: int, *, shown: bool) -> None:
        self._bar: Any = None
        if shown:
            self._bar = tqdm(total=steps, initial=min(done, steps), unit="step", mininterval=0.5)

    def show(self, loss: float, epochs: list[dict[str, Any]]) -> None:
        """One more step."""
        if self._bar is None:
            return
        seen = {"loss": f"{loss:.3f}"}
        if epochs and epochs[-1].get("val_accuracy") is not None:
            seen["validation accuracy"] = f"{epochs[-1]['val_accuracy']:.1%}"
        self._bar.set_postfix(seen, refresh=False)
        self._bar.update()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
