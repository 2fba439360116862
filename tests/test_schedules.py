import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlcourse.schedules import Constant, Cosine, StepDecay, WarmUp

steps = st.integers(1, 500)
shares = st.floats(0, 1)
schedules = st.one_of(
    st.just(Constant()),
    st.builds(StepDecay, steps, st.floats(0.01, 1)),
    st.builds(Cosine, steps, shares),
)


@given(schedule=schedules, step=st.integers(0, 1000))
def test_a_schedule_starts_at_one_and_never_rises(schedule, step):
    assert schedule(0) == 1.0
    assert 0 <= schedule(step + 1) <= schedule(step) <= 1


@given(length=steps, then=schedules, step=st.integers(0, 1000))
def test_a_warm_up_rises_to_one_and_then_follows_the_next_schedule(length, then, step):
    schedule = WarmUp(length, then)
    if step < length:
        assert 0 < schedule(step) == pytest.approx((step + 1) / length)
    else:
        assert schedule(step) == then(step - length)
    assert schedule(length - 1) == 1.0


def test_a_warm_up_alone_stays_at_one():
    assert [WarmUp(4)(step) for step in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]


def test_a_warm_up_of_no_steps_is_the_next_schedule():
    assert WarmUp(0, Cosine(10))(3) == Cosine(10)(3)


def test_a_step_decay_falls_after_each_stretch():
    assert [StepDecay(2, 0.5)(step) for step in range(6)] == [1, 1, 0.5, 0.5, 0.25, 0.25]


def test_a_step_decay_may_reach_zero_without_an_error():
    assert StepDecay(1, 0.1)(10_000) == 0.0


@given(length=steps, floor=shares)
def test_a_cosine_ends_at_its_floor_and_stays_there(length, floor):
    assert Cosine(length, floor)(length) == Cosine(length, floor)(10 * length) == pytest.approx(floor)


def test_a_cosine_is_half_way_at_half_of_its_steps():
    assert Cosine(100, 0.2)(50) == pytest.approx(0.6)
    assert Cosine(100)(25) == pytest.approx((1 + math.cos(math.pi / 4)) / 2)


@pytest.mark.parametrize(
    "schedule", [Constant(), StepDecay(np.int64(3), np.float64(0.5)), Cosine(np.int64(5), np.float32(0.5)), WarmUp(2)]
)
def test_a_factor_is_a_python_float(schedule):
    assert all(type(schedule(step)) is float for step in (0, 1, 7))
    assert type(schedule(np.int64(3))) is float


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StepDecay(0), "StepDecay: every is 0; it must be at least 1"),
        (lambda: StepDecay(5, 0.0), r"StepDecay: factor is 0.0; it must be in \(0, 1\]"),
        (lambda: StepDecay(5, 1.5), "StepDecay: factor is 1.5"),
        (lambda: StepDecay(5, math.nan), "StepDecay: factor is nan"),
        (lambda: Cosine(0), "Cosine: steps is 0; it must be at least 1"),
        (lambda: Cosine(5, -0.1), r"Cosine: floor is -0.1; it must be in \[0, 1\]"),
        (lambda: WarmUp(-1), "WarmUp: steps is -1; it must be at least 0"),
        (lambda: Constant()(-1), "Constant: step is -1; it must be at least 0"),
        (lambda: WarmUp(3)(-1), "WarmUp: step is -1; it must be at least 0"),
    ],
)
def test_a_setting_out_of_range_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cosine(10.0), "Cosine: steps is 10.0; it must be a whole number"),
        (lambda: StepDecay("3"), "StepDecay: every is '3'"),
        (lambda: Constant()(0.5), "Constant: step is 0.5"),
        (lambda: WarmUp(3, then=0.1), "WarmUp: then is 0.1; it must be a schedule"),
        (lambda: WarmUp(3, then=Cosine), "WarmUp: then is .*Cosine.*; it must be a schedule"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_named(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_a_schedule_is_frozen_and_comparable():
    assert WarmUp(3, Cosine(7)) == WarmUp(3, Cosine(7)) != WarmUp(3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Cosine(3).steps = 4
