"""The buffer plan: nothing that lives overlaps, the forward pass is the same to the bit and allocates next to nothing."""

import numpy as np
import pytest
from helpers import by_name, same_bits
from hypothesis import given
from hypothesis import strategies as st

from dlcourse import layers as L
from dlcourse import memory, models
from dlcourse.calls import Lifetime
from dlcourse.memory import Arena, plan_buffers
from dlcourse.memory.buffers import ALIGNED, step_bytes
from dlcourse.model import Sequential

MIB = 2**20
SPANS = st.tuples(st.integers(0, 9), st.integers(0, 9))


@given(st.lists(st.tuples(st.integers(0, 5000), SPANS), max_size=30))
def test_no_two_that_live_at_the_same_time_overlap(found):
    alive = [Lifetime("saved", size, min(span), max(span), i) for i, (size, span) in enumerate(found)]
    plan = plan_buffers(alive)
    assert plan.bound <= plan.nbytes <= sum(-(-one.nbytes // ALIGNED) * ALIGNED for one in alive)
    assert {one.value for one in plan.offsets} == {one.value for one in alive if one.nbytes}
    for one, at in plan.offsets.items():
        assert at % ALIGNED == 0 and at + one.nbytes <= plan.nbytes
        for other, there in plan.offsets.items():
            apart = one.last < other.first or other.last < one.first
            assert one is other or apart or at + one.nbytes <= there or there + other.nbytes <= at


def test_the_pieces_of_one_array_are_one_place():
    plan = plan_buffers(
        [Lifetime("workspace", 100, 0, 1, 7), Lifetime("saved", 100, 2, 5, 7), Lifetime("grads", 64, 4, 4)]
    )
    assert [(one.first, one.last) for one in plan.offsets] == [(0, 5), (4, 4)]
    assert plan.nbytes == plan.bound == 128 + 64


@pytest.mark.parametrize("batch", [100, 37])
def test_a_forward_pass_of_cifar_cnn_in_an_arena_has_the_same_bits_and_allocates_its_workspace_alone(batch):
    model, rng = models.cifar_cnn(), np.random.default_rng(0)
    params = model.init((32, 32, 3), rng)
    x = rng.standard_normal((batch, 32, 32, 3), dtype=np.float32)
    calls = model.calls((32, 32, 3), 100, np.float32, train=False)
    arena = Arena(calls)
    expected = model.forward(params, x)[0]
    for _ in range(2):
        with memory.traced_peak() as traced:
            y, _ = model.forward(params, x, call=arena.call)
        assert same_bits(y, expected)
    workspace = max(call.plan.forward_workspace for call in calls)
    assert arena.plan.nbytes == arena.plan.bound == 25 * MIB
    assert traced.peak <= workspace + 64 * 1024
    bill = memory.bill(model, (32, 32, 3), batch_size=100, inference=True)
    highest = max(moment.workspace for moment in bill.moments)  # in the second convolution
    assert highest == arena.plan.nbytes + calls[2].plan.forward_workspace
    assert f"{highest / MIB:.1f}" == "26.3"


@pytest.mark.parametrize("case", **by_name())
def test_each_layer_in_a_chain_gives_the_same_bits_in_training_forward_and_backward(case):
    model, rng = Sequential([L.ReLU(), case.layer, L.Tanh(), L.GELU()]), np.random.default_rng(0)
    params = model.init(case.small, rng)
    x = rng.standard_normal((4, *case.small), dtype=np.float32)
    arena = Arena(model.calls(case.small, 4, np.float32), train=True)
    results = []
    for how in ({}, {"call": arena.call}):
        y, saved = model.forward(params, x, train=True, rng=np.random.default_rng(1), **how)
        results.append([y.copy(), *model.backward(params, saved, np.ones_like(y))])
    assert same_bits(*results)


def test_the_plan_of_a_training_step_is_near_its_bound():
    model = models.cifar_cnn()
    bill = memory.bill(model, (32, 32, 3), batch_size=100)
    calls = model.calls((32, 32, 3), 100, np.float32)
    plan = step_bytes(calls, {row.name: row.grads for row in bill.rows}, 0)
    assert plan.bound <= plan.nbytes <= 1.05 * plan.bound
    assert plan.bound == pytest.approx(bill.peak - bill.total("params") - bill.total("data"), rel=0.01)


class OwnForward(L.ReLU):
    """A layer of somebody's own, whose forward knows no `out`."""

    def forward(self, params, x, *, train=False, rng=None):
        return super().forward(params, x, train=train, rng=rng)


def test_a_layer_with_a_forward_of_its_own_is_left_alone():
    model = Sequential([L.Affine(5), OwnForward(), L.Affine(3)])
    params, x = model.init((4,), np.random.default_rng(0)), np.ones((2, 4), np.float32)
    arena = Arena(model.calls((4,), 2, np.float32, train=False))
    assert same_bits(model.forward(params, x, call=arena.call)[0], model.forward(params, x)[0])
