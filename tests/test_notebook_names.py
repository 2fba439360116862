"""Every name of the package that a notebook uses, in code or in prose, is there."""

import ast
import importlib
import inspect
import json
import re
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def cells(path, kind):
    for i, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == kind:
            yield i, "".join(cell["source"])


def parsed(source):
    """The code of a cell without its magics, None if that is no Python."""
    lines = [re.sub(r"^(\s*)[%!?].*", r"\1pass", line) for line in source.splitlines()]
    try:
        return ast.parse("\n".join(lines))
    except SyntaxError:
        return None


def missing(thing, names):
    """The first of the attributes of attributes that is not there, "" if all are; as far as these are modules and classes,
    whose attributes are known."""
    for name in names:
        if not (inspect.ismodule(thing) or inspect.isclass(thing)):
            return ""
        if not hasattr(thing, name):
            if inspect.ismodule(thing):
                try:
                    importlib.import_module(f"{thing.__name__}.{name}")
                except ImportError:
                    return name
            elif not any(name in getattr(base, "__annotations__", {}) for base in thing.__mro__):
                return name
        thing = getattr(thing, name, None)
    return ""


def imported(trees):
    """{name in the notebook: the module or object of the package}, without what the notebook gives another meaning; and
    what could not be imported."""
    found, wrong = {}, []
    for i, tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dlcourse":
                module = importlib.import_module(node.module)
                for alias in node.names:
                    if name := missing(module, [alias.name]):
                        wrong.append(f"cell {i}: from {node.module} import {name}")
                    else:
                        found[alias.asname or alias.name] = getattr(module, alias.name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.split(".")[0] == "dlcourse":
                        found[alias.asname or "dlcourse"] = importlib.import_module(
                            alias.name if alias.asname else "dlcourse"
                        )
    stored = {
        node.id if isinstance(node, ast.Name) else node.name if hasattr(node, "name") else node.arg
        for _, tree in trees
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        or isinstance(node, ast.FunctionDef | ast.ClassDef | ast.arg)
    }
    return {name: thing for name, thing in found.items() if name not in stored}, wrong


def wrong_names(path):
    trees = [(i, tree) for i, source in cells(path, "code") if (tree := parsed(source))]
    names, wrong = imported(trees)
    for i, tree in trees:
        for node in ast.walk(tree):
            chain, inner = [], node
            while isinstance(inner, ast.Attribute):
                chain.insert(0, inner.attr)
                inner = inner.value
            if chain and isinstance(inner, ast.Name) and inner.id in names and missing(names[inner.id], chain):
                wrong.append(f"cell {i}: {'.'.join([inner.id, *chain])}")
    modules = {name: thing for name, thing in names.items() if inspect.ismodule(thing)}
    modules["dlcourse"] = importlib.import_module("dlcourse")
    for i, text in cells(path, "markdown"):
        for code in re.findall(r"`([^`\n]+)`", text):
            for first, rest in re.findall(r"(?<![\w./])(\w+)((?:\.[A-Za-z_]\w*)+)", code):
                parts = rest.strip(".").split(".")
                file = "/" in code or parts[-1] in ("py", "ipynb")
                if first in modules and not file and missing(modules[first], parts):
                    wrong.append(f"cell {i}: `{first}{rest}`")
    return wrong


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_name_of_the_package_that_a_notebook_uses_is_there(path):
    assert wrong_names(path) == []


def test_a_name_that_is_not_there_is_found(tmp_path):
    code = """
        from dlcourse import memory, tree
        from dlcourse import layers as L, nothing
        import dlcourse.optim as optim
        memory.bill, L.ReLU().forward, L.Affine.init, L.Affine.units, optim.Adam.lr, memory.tables.Table
        tree.map(f, x); L.Swish(); optim.Adam.rate
        %memit memory.bell()
        models = 3; models.mlp
    """
    text = "`memory.bill` and `memory.grid.text(…)`, `dlcourse.plan.Plan`, `dlcourse.factor`, `tree.py`, `dlcourse/tree.py`"
    cells = [{"cell_type": "code", "source": inspect.cleandoc(code)}, {"cell_type": "markdown", "source": text}]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert sorted(wrong_names(tmp_path / "a.ipynb")) == [
        "cell 0: L.Swish",
        "cell 0: from dlcourse import nothing",
        "cell 0: optim.Adam.rate",
        "cell 0: tree.map",
        "cell 1: `dlcourse.factor`",
        "cell 1: `memory.grid.text`",
    ]
