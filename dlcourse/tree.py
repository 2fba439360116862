"""Trees of arrays: dicts, lists and tuples, nested to any depth, with arrays (or None) at the leaves.

Parameters, gradients, optimizer slots and saved tensors are all such trees. Everything that walks one uses these
functions, so a residual block or a layer in a layer needs no code of its own.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Tree = Any  # dict[str, Tree] | list[Tree] | tuple[Tree, ...] | np.ndarray | None

BUFFERS = "buffers"  # the reserved key of state that is neither trained nor saved (running statistics)


def map(f: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """Apply `f` to each leaf (and to the leaves at the same place in `others`); returns a tree of the same shape."""
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {key: map(f, child, *(other[key] for other in others)) for key, child in tree.items()}
    if isinstance(tree, list | tuple):
        children = [map(f, child, *(other[i] for other in others)) for i, child in enumerate(tree)]
        return tuple(children) if isinstance(tree, tuple) else children
    return f(tree, *others)


def items(tree: Tree, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield ("a/b/W", leaf) for each leaf, in the order in which the tree is written."""
    if tree is None:
        return
    if isinstance(tree, dict):
        children: Any = tree.items()
    elif isinstance(tree, list | tuple):
        children = enumerate(tree)
    else:
        yield prefix, tree
        return
    for key, child in children:
        yield from items(child, f"{prefix}/{key}" if prefix else str(key))


def leaves(tree: Tree) -> list[Any]:
    """The leaves, in the order in which the tree is written."""
    return [leaf for _, leaf in items(tree)]


def flatten(tree: Tree) -> dict[str, Any]:
    """A tree of dicts as one flat dict: {"conv2d_1/W": array, …}. A key must not contain "/"."""
    return dict(items(tree))


def unflatten(flat: dict[str, Any]) -> dict[str, Any]:
    """The inverse of `flatten` for trees of dicts: {"a/W": x} -> {"a": {"W": x}}."""
    tree: dict[str, Any] = {}
    for name, leaf in flat.items():
        *path, last = name.split("/")
        node = tree
        for key in path:
            node = node.setdefault(key, {})
        node[last] = leaf
    return tree


def trainable(params: Tree) -> Tree:
    """The part of `params` that has gradients: the same arrays, without what stands under a "buffers" key."""
    if isinstance(params, list | tuple):
        return type(params)(trainable(child) for child in params)
    if not isinstance(params, dict):
        return params
    kept = {key: trainable(child) for key, child in params.items() if key != BUFFERS}
    return {key: child for key, child in kept.items() if not (isinstance(child, dict) and not child)}


def buffers(params: Tree) -> list[np.ndarray]:
    """The arrays under a "buffers" key, which `trainable` passes over."""
    return [leaf for name, leaf in items(params) if BUFFERS in name.split("/")]


def copy(tree: Tree) -> Tree:
    """A tree of the same shape with a copy of each array."""
    return map(np.copy, tree)


def count(params: Tree) -> int:
    """The number of trainable scalars."""
    return sum(leaf.size for leaf in leaves(trainable(params)))


def nbytes(tree: Tree) -> int:
    """The bytes of the arrays, each owning array counted once however many views the tree has of it."""
    return sum(array.nbytes for array in owners(tree).values())


def owners(tree: Tree) -> dict[int, np.ndarray]:
    """{id: array} of the arrays that own the memory of the leaves: a view is led back to its base."""
    found = {}
    for leaf in leaves(tree):
        while isinstance(leaf.base, np.ndarray):
            leaf = leaf.base
        found[id(leaf)] = leaf
    return found
