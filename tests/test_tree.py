import numpy as np
import pytest

from dlcourse import tree
from dlcourse.factors import Factors

A, B, C = np.arange(3.0), np.ones((2, 2)), np.zeros(1)
NESTED = {"block": {"conv": {"W": A, "b": B}}, "pair": (C, [A, None]), "none": None}


def test_map_keeps_the_form_of_a_tree_of_any_depth():
    doubled = tree.map_leaves(lambda leaf: 2 * leaf, NESTED)
    assert doubled.keys() == NESTED.keys()
    assert isinstance(doubled["pair"], tuple)
    assert isinstance(doubled["pair"][1], list)
    assert doubled["pair"][1][1] is doubled["none"] is None
    np.testing.assert_array_equal(doubled["block"]["conv"]["W"], 2 * A)


def test_map_of_several_trees_takes_the_leaves_of_the_same_place():
    total = tree.map_leaves(np.add, NESTED, tree.map_leaves(np.ones_like, NESTED))
    np.testing.assert_array_equal(total["pair"][1][0], A + 1)
    np.testing.assert_array_equal(total["block"]["conv"]["b"], B + 1)


def test_items_name_each_leaf_by_its_path_in_the_order_it_is_written():
    names = ["block/conv/W", "block/conv/b", "pair/0", "pair/1/0"]
    assert [name for name, _ in tree.items(NESTED)] == names
    assert [id(leaf) for leaf in tree.leaves(NESTED)] == [id(A), id(B), id(C), id(A)]


def test_unflatten_gives_the_form_of_the_other_tree_back_whatever_its_names_hold():
    params = {"sequential_1/affine_1": {"W": A, "b": B}, "affine_1": {"W": C, "inner": [A, (B, None)]}}
    flat = tree.flatten(params)
    names = [
        "sequential_1/affine_1/W",
        "sequential_1/affine_1/b",
        "affine_1/W",
        "affine_1/inner/0",
        "affine_1/inner/1/0",
    ]
    assert list(flat) == names
    again = tree.unflatten(dict(reversed(flat.items())), like=params)
    assert list(again) == ["sequential_1/affine_1", "affine_1"]
    assert again["sequential_1/affine_1"]["b"] is B
    assert again["affine_1"]["inner"][0] is A and again["affine_1"]["inner"][1] == (B, None)


def test_unflatten_and_flatten_refuse_names_that_do_not_fit():
    with pytest.raises(ValueError, match="only one of the two trees has a/V, a/W"):
        tree.unflatten({"a/V": A}, like={"a": {"W": A}})
    with pytest.raises(ValueError, match="two leaves are named 'a/b'"):
        tree.flatten({"a/b": A, "a": {"b": B}})


def test_a_leaf_may_be_a_gradient_in_another_form():
    x, dy = np.ones((2, 5)), np.ones((2, 3))
    grads = {"affine_1": {"W": Factors(((x, dy), (x[:1], dy[:1]))), "b": A}}
    assert [name for name, _ in tree.items(grads)] == ["affine_1/W", "affine_1/b"]
    assert tree.map_leaves(lambda leaf: leaf, grads)["affine_1"]["W"] is grads["affine_1"]["W"]
    assert tree.nbytes(grads) == x.nbytes + dy.nbytes + A.nbytes


def test_trainable_passes_over_buffers_at_any_depth_and_over_what_has_nothing_else():
    norm = {"gamma": A, "buffers": {"mean": B, "var": C}}
    params = {"norm": norm, "list": [norm], "alone": {"buffers": {"mean": A}}, "deep": {"deeper": norm}}
    kept = tree.trainable(params)
    assert [name for name, _ in tree.items(kept)] == ["norm/gamma", "list/0/gamma", "deep/deeper/gamma"]
    assert kept["norm"]["gamma"] is A
    assert "alone" not in kept
    assert len(tree.buffers(params)) == 7
    assert tree.count(params) == 9


def test_copy_shares_no_memory():
    copied = tree.copy(NESTED)
    assert not any(np.shares_memory(a, b) for a, b in zip(tree.leaves(copied), tree.leaves(NESTED), strict=True))


def test_bytes_of_an_array_count_once_however_many_views_a_tree_has_of_it():
    base = np.zeros(1000)
    views = {"all": base, "part": base[:10], "shape": base.reshape(10, 100)[2:], "other": np.zeros(5)}
    assert tree.nbytes(views) == base.nbytes + 40
    assert tree.owners(base[::2]) == {id(base): base}


def test_bytes_of_nothing_are_none():
    assert tree.nbytes(None) == tree.nbytes({}) == tree.nbytes([None, ()]) == 0
    assert tree.leaves({}) == []
