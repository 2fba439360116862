"""Trees of arrays: dicts, lists and tuples, nested to any depth, with arrays (or None) at the leaves.

Parameters, gradients, optimizer slots and saved tensors are all such trees. Everything that walks one uses these
functions, so a residual block or a layer in a layer needs no code of its own. What is neither a dict, a list, a tuple nor
None is a leaf: an array, or a gradient in another form, which gives its arrays as `leaf.arrays` (`factors.Factors`).

Names of leaves join the keys by "/". A layer's name may hold a "/" itself, so no function takes a name apart.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Tree = Any  # dict[str, Tree] | list[Tree] | tuple[Tree, ...] | np.ndarray | None

BUFFERS = "buffers"  # the reserved key of state that is neither trained nor saved (running statistics)


def map_leaves(f: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """Apply `f` to each leaf (and to the leaves at the same place in `others`); returns a tree of the same form."""
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {key: map_leaves(f, child, *(other[key] for other in others)) for key, child in tree.items()}
    if isinstance(tree, list | tuple):
        children = [map_leaves(f, child, *(other[i] for other in others)) for i, child in enumerate(tree)]
        return tuple(children) if isinstance(tree, tuple) else children
    return f(tree, *others)


def flatten(tree: Tree, prefix: str = "", *, buffers: bool = True) -> dict[str, Any]:
    """{"a/b/W": leaf, …}, in the order in which the tree is written; with `buffers=False` without what stands under a
    "buffers" key. Raises ValueError if two leaves have one name."""
    found: dict[str, Any] = {}
    waiting = [(prefix, tree)]
    while waiting:
        name, node = waiting.pop()
        if isinstance(node, dict | list | tuple):
            children = []
            for key, child in node.items() if isinstance(node, dict) else enumerate(node):
                if buffers or key != BUFFERS:
                    children.append((f"{name}/{key}" if name else str(key), child))
            waiting += children[::-1]
        elif node is not None:
            if name in found:
                raise ValueError(f"two leaves are named {name!r}")
            found[name] = node
    return found


def items(tree: Tree, prefix: str = "") -> list[tuple[str, Any]]:
    """[("a/b/W", leaf), …], in the order in which the tree is written."""
    return list(flatten(tree, prefix).items())


def leaves(tree: Tree) -> list[Any]:
    """The leaves, in the order in which the tree is written."""
    return list(flatten(tree).values())


def unflatten(flat: dict[str, Any], like: Tree) -> Tree:
    """The inverse of `flatten`: a tree of the form of `like`, with the leaves of `flat`. Raises ValueError if their names
    are not those of `like`."""
    names = flatten(like)
    if others := flat.keys() ^ names.keys():
        raise ValueError(f"only one of the two trees has {', '.join(sorted(others))}")
    values = iter([flat[name] for name in names])
    return map_leaves(lambda _: next(values), like)


def trainable(params: Tree) -> Tree:
    """The part of `params` that has gradients: the same arrays, without what stands under a "buffers" key."""
    if isinstance(params, list | tuple):
        return type(params)(map(trainable, params))
    if not isinstance(params, dict):
        return params
    kept = {key: trainable(child) for key, child in params.items() if key != BUFFERS}
    return {key: child for key, child in kept.items() if not (isinstance(child, dict) and not child)}


def buffers(params: Tree) -> list[np.ndarray]:
    """The arrays under a "buffers" key, which `trainable` passes over."""
    trained = flatten(params, buffers=False)
    return [leaf for name, leaf in flatten(params).items() if name not in trained]


def copy(tree: Tree) -> Tree:
    """A tree of the same form with a copy of each array."""
    return map_leaves(np.copy, tree)


def count(params: Tree) -> int:
    """The number of trainable scalars."""
    return sum(leaf.size for leaf in flatten(params, buffers=False).values())


def nbytes(tree: Tree) -> int:
    """The bytes of the arrays, each owning array counted once however many views the tree has of it."""
    return sum(array.nbytes for array in owners(tree).values())


def owners(tree: Tree) -> dict[int, np.ndarray]:
    """{id: array} of the arrays that own the memory of the leaves: the base of a view, and the view's base again."""
    found = {}
    for leaf in leaves(tree):
        for array in getattr(leaf, "arrays", (leaf,)):
            while isinstance(array.base, np.ndarray):
                array = array.base
            found[id(array)] = array
    return found
