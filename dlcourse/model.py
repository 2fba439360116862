"""Sequential: names layers, and runs them forward and back."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dlcourse import tree
from dlcourse.factors import multiply_out
from dlcourse.layers import Layer
from dlcourse.layers.base import Params, Shape


@dataclass(frozen=True, init=False)
class Sequential:
    """Layers one after the other, named by their kind and count: conv2d_1, relu_1, conv2d_2, …

    It is a layer too, so a Sequential may stand in a Sequential. Parameters are {layer name: {"W": …}}, without the
    layers that have none; saved tensors are {layer name: what the layer keeps}.
    """

    layers: tuple[Any, ...]  # each a Layer or a Sequential

    def __init__(self, layers: Iterable[Any]) -> None:
        object.__setattr__(self, "layers", tuple(layers))
        for i, layer in enumerate(self.layers):
            if isinstance(layer, type) or not hasattr(layer, "forward"):
                raise TypeError(f"Sequential: layer {i + 1} is {layer!r}; give a layer, such as ReLU()")

    @property
    def names(self) -> tuple[str, ...]:
        counts: dict[str, int] = {}
        names = []
        for layer in self.layers:
            kind = type(layer).__name__.lower()
            counts[kind] = counts.get(kind, 0) + 1
            names.append(f"{kind}_{counts[kind]}")
        return tuple(names)

    def named(self) -> Iterator[tuple[str, Any]]:
        """The layers with their names, in order."""
        return zip(self.names, self.layers, strict=True)

    def shapes(self, in_shape: Shape) -> list[Shape]:
        """The input's shape and then each layer's output's, without the batch axis. Raises ValueError, which names the
        layer, where one does not fit."""
        return self._shapes(in_shape, "")

    def _shapes(self, in_shape: Shape, prefix: str) -> list[Shape]:
        shapes = [tuple(in_shape)]
        for name, layer in self.named():
            if isinstance(layer, Sequential):
                shapes.append(layer._shapes(shapes[-1], f"{prefix}{name}/")[-1])
                continue
            with _naming(prefix + name, layer):
                shapes.append(layer.out_shape(shapes[-1]))
        return shapes

    def out_shape(self, in_shape: Shape) -> Shape:
        return self.shapes(in_shape)[-1]

    def init(self, in_shape: Shape, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        """New parameters for inputs of `in_shape`, drawn from `rng`. Allocates the parameters."""
        params = {}
        for (name, layer), shape in zip(self.named(), self.shapes(in_shape), strict=False):
            if own := layer.init(shape, rng, dtype):
                params[name] = own
        return params

    def forward(
        self, params: Params, x: np.ndarray, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, Any]:
        """-> (y, saved).  x (N, …).  With `train=False` nothing is kept and saved is None: each activation goes as soon
        as the next one is there. `rng` is drawn from by the layers in order. Changes no parameter. Floats of another
        dtype than the parameters' are copied in theirs."""
        if not isinstance(x, np.ndarray):
            raise TypeError(f"expected a NumPy array, got {type(x).__name__}")
        if x.ndim == 0 or len(x) == 0:
            raise ValueError(f"expected a batch of at least one input, got an array of shape {x.shape}")
        x = _like_params(x, params)
        saved: Params = {}
        for name, layer, own, place, key in self._walk(params, saved):
            with _naming(name, layer):
                x, kept = layer.forward(own, x, train=train, rng=rng)
            if train:
                place[key] = kept
        return x, saved if train else None

    def backward(
        self,
        params: Params,
        saved: Any,
        dy: np.ndarray,
        *,
        need_dx: bool = True,
        overwrite_dy: bool = False,
        release: bool = False,
        batch: int | None = None,
    ) -> tuple[np.ndarray | None, Params]:
        """-> (dx, grads), grads with the names of the trainable params.  dy like y, `saved` of a forward with
        train=True.

        With `release=True`, as in training, `saved` is emptied layer by layer, so each saved array is freed as soon as
        its backward is done, and the first layer's dx is not computed (None).

        batch: the samples of the whole batch, where this is a micro-batch of it. Then a gradient is `Factors` where these
        are smaller, and whoever adds the micro-batches up calls `finish` at the end.
        """
        if saved is None:
            raise ValueError("nothing was saved for backward; run forward with train=True")
        grads = {}
        given = _like_params(dy, params)
        overwrite_dy = overwrite_dy or given is not dy
        for i, (name, layer, own, place, key) in reversed(list(enumerate(self._walk(params, saved)))):
            if key not in place:
                raise ValueError(f"nothing is saved of {name}; a forward pass that was released has no second backward")
            kept = place.pop(key) if release else place[key]
            with _naming(name, layer):
                needed = i > 0 or (need_dx and not release)
                how = {"need_dx": needed, "overwrite_dy": overwrite_dy}
                if isinstance(kept, np.ndarray) and comes_as_factors(layer, kept.shape[1:], batch):
                    how["factors"] = True
                dx, grad = layer.backward(own, kept, given, **how)
            # What a layer returns belongs to this function, unless it is (a view of) what it was given.
            overwrite_dy = overwrite_dy or (dx is not None and not np.may_share_memory(dx, given))
            given = dx
            if grad:
                grads[name] = grad
        if release:
            saved.clear()
        return given, tree.unflatten(dict(reversed(grads.items())))

    def finish(self, grads: Params) -> None:
        """Multiply out, in place, what micro-batches have left as `Factors`. Allocates each product, and its rows side
        by side."""
        multiply_out(grads)

    def _walk(self, params: Params, saved: Any, prefix: str = "") -> Iterator[tuple[str, Layer, Params, Any, str]]:
        """(name, layer, its parameters, the dict that holds what it saves, its key there) of each layer that is not
        itself a Sequential. So one loop runs them all, and no caller holds an array that an inner layer is done with."""
        for name, layer in self.named():
            own = params.get(name, {})
            if isinstance(layer, Sequential):
                yield from layer._walk(own, saved.setdefault(name, {}), f"{prefix}{name}/")
            else:
                yield prefix + name, layer, own, saved, name

    def statistics(self, saved: Any) -> Any:
        """The part of `saved` that `update_buffers` needs; {} for a network without BatchNorm."""
        found = {}
        for name, layer in self.named():
            if isinstance(layer, _HasBuffers) and (part := layer.statistics(saved[name])):
                found[name] = part
        return found

    def update_buffers(self, params: Params, saved: Any) -> None:
        """Move running statistics towards those of one forward pass, in place. `saved`, or its `statistics`."""
        for name, layer in self.named():
            if isinstance(layer, _HasBuffers) and name in params and name in saved:
                layer.update_buffers(params[name], saved[name])

    def flat(self, in_shape: Shape, prefix: str = "") -> Iterator[tuple[str, Layer, Shape]]:
        """(name, layer, its input's shape) of each layer that is not itself a Sequential; inner names are joined by "/"."""
        for (name, layer), shape in zip(self.named(), self.shapes(in_shape), strict=False):
            if isinstance(layer, Sequential):
                yield from layer.flat(shape, f"{prefix}{name}/")
            else:
                yield prefix + name, layer, shape


@runtime_checkable
class _HasBuffers(Protocol):
    """Anything with `statistics` and `update_buffers`, as BatchNorm has them."""

    def statistics(self, saved: Any) -> Any: ...
    def update_buffers(self, params: Params, saved: Any) -> None: ...


def comes_as_factors(layer: Any, in_shape: Shape, batch: int | None) -> bool:
    """Whether a layer hands on a gradient as `Factors`, with micro-batches of a batch of so many samples (None: it is not
    cut). Only a layer that has `factors_pay` and whose `backward` takes `factors=True` does, such as Affine."""
    pay = getattr(layer, "factors_pay", None)
    return batch is not None and pay is not None and pay(in_shape, batch)


def _like_params(array: np.ndarray, params: Params) -> np.ndarray:
    """Floats in the dtype of the parameters, so that every activation and gradient has it."""
    found = tree.leaves(params)
    if not found or array.dtype.kind != "f":
        return array
    return array.astype(found[0].dtype, copy=False)


@contextmanager
def _naming(name: str, layer: Any) -> Iterator[None]:
    """Put the layer's name before an error that comes out of it."""
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        text = (
            f"{error} is missing from its parameters, or from what it keeps"
            if isinstance(error, KeyError)
            else str(error)
        )
        raise kind(f"{type(layer).__name__} '{name}': {text}") from error
