import numpy as np

from dlcourse import tree

A, B, C = np.arange(3.0), np.ones((2, 2)), np.zeros(1)
NESTED = {"block": {"conv": {"W": A, "b": B}}, "pair": (C, [A, None]), "none": None}


def test_map_keeps_the_form_of_a_tree_of_any_depth():
    doubled = tree.map(lambda leaf: 2 * leaf, NESTED)
    assert doubled.keys() == NESTED.keys()
    assert isinstance(doubled["pair"], tuple)
    assert isinstance(doubled["pair"][1], list)
    assert doubled["pair"][1][1] is doubled["none"] is None
    np.testing.assert_array_equal(doubled["block"]["conv"]["W"], 2 * A)


def test_map_of_several_trees_takes_the_leaves_of_the_same_place():
    total = tree.map(np.add, NESTED, tree.map(np.ones_like, NESTED))
    np.testing.assert_array_equal(total["pair"][1][0], A + 1)
    np.testing.assert_array_equal(total["block"]["conv"]["b"], B + 1)


def test_items_name_each_leaf_by_its_path_in_the_order_it_is_written():
    names = ["block/conv/W", "block/conv/b", "pair/0", "pair/1/0"]
    assert [name for name, _ in tree.items(NESTED)] == names
    assert [id(leaf) for leaf in tree.leaves(NESTED)] == [id(A), id(B), id(C), id(A)]


def test_flatten_and_unflatten_are_inverse_for_trees_of_dicts():
    params = {"sequential_1": {"affine_1": {"W": A, "b": B}}, "affine_1": {"W": C}}
    flat = tree.flatten(params)
    assert list(flat) == ["sequential_1/affine_1/W", "sequential_1/affine_1/b", "affine_1/W"]
    again = tree.unflatten(flat)
    assert again.keys() == params.keys()
    assert again["sequential_1"]["affine_1"]["b"] is B


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
