"""The bill of lists of calls that are no chain: two ways that meet, a layer that is used twice, several inputs."""

import gc
from dataclasses import dataclass

import numpy as np
import pytest
from helpers import blobs

from dlcourse import layers as L
from dlcourse import losses, memory, models, optim, tree
from dlcourse.calls import Call, Value, lifetimes, owners
from dlcourse.gradients import gradients
from dlcourse.model import Sequential, plainly
from dlcourse.plan import Plan

KIB = 1024


@dataclass(frozen=True)
class Add:
    """y = a + b: hands dy on to both."""

    def init(self, in_shape, rng, dtype=np.float32):
        return {}

    def out_shape(self, *in_shapes):
        return in_shapes[0]

    def forward(self, params, *xs, train=False, rng=None):
        return xs[0] + xs[1], None

    def backward(self, params, saved, dy, *, need_dx=True, overwrite_dy=False):
        return (dy, dy), {}

    def plan(self, *in_shapes, batch, dtype, train=True):
        return Plan(dx_is_dy=True)


@dataclass(frozen=True)
class Multiply(Add):
    """y = a · b: keeps both."""

    def forward(self, params, *xs, train=False, rng=None):
        return xs[0] * xs[1], xs if train else None

    def backward(self, params, saved, dy, *, need_dx=True, overwrite_dy=False):
        return (dy * saved[1], dy * saved[0]), {}

    def plan(self, *in_shapes, batch, dtype, train=True):
        return Plan(saves_inputs=(0, 1) if train else ())


class Gradient:
    def __init__(self, array):
        self.array, self.shared, self.is_sum = array, False, False


class Net:
    """Runs steps (name, layer, numbers of its inputs) as a tape would; -1 is the input."""

    def __init__(self, *steps):
        self.steps = steps
        self.last_use = {i: n for n, (_, _, inputs) in enumerate(steps) for i in inputs}

    def calls(self, in_shape, batch, dtype, *, train=True):
        values, calls = {-1: Value(-1, (batch, *in_shape), np.dtype(dtype))}, []
        for number, (name, layer, inputs) in enumerate(self.steps):
            xs = tuple(values[i] for i in inputs)
            shapes = [x.shape[1:] for x in xs]
            values[number] = y = Value(number, (batch, *layer.out_shape(*shapes)), np.dtype(dtype))
            calls.append(Call(number, name, layer, xs, y, layer.plan(*shapes, batch=batch, dtype=dtype, train=train)))
        return calls

    def init(self, in_shape, rng):
        params = {}
        for call in self.calls(in_shape, 1, np.float32):
            if call.name not in params and (own := call.layer.init(call.in_shapes[0], rng)):
                params[call.name] = own
        return params

    def forward(self, params, x, *, train=False, rng=None, call=plainly):
        values, saved = {-1: x}, {}
        for n, (name, layer, inputs) in enumerate(self.steps):
            xs = [values[i] for i in inputs]
            options = {"train": train, "rng": rng}
            values[n], kept = call(f"{name}, forward", layer.forward, params.get(name, {}), *xs, **options)
            saved.setdefault(name, {})[n] = kept
            del xs, kept
            for i in inputs:
                if self.last_use[i] == n and i in values:
                    del values[i]
        return values[n], saved if train else None

    def backward(self, params, saved, dy, *, overwrite_dy=False, release=True, defer=(), call=plainly):
        waiting, grads = {len(self.steps) - 1: Gradient(dy)}, {}
        for n, (name, layer, inputs) in reversed(list(enumerate(self.steps))):
            if n not in waiting:
                continue
            now = waiting.pop(n)
            now.shared = now.shared or any(other is now for other in waiting.values())
            kept = saved[name].pop(n)
            options = {"need_dx": any(i >= 0 for i in inputs), "overwrite_dy": not now.shared}
            dxs, own = call(f"{name}, backward", layer.backward, params.get(name, {}), kept, now.array, **options)
            del kept
            for i, dx in zip(inputs, dxs if isinstance(dxs, tuple) else (dxs,), strict=True):
                if i >= 0:
                    self._hand_on(i, dx, now, waiting, call)
            del dxs, dx, now
            if own:
                tree.map_leaves(lambda a, b: np.add(a, b, out=a), grads[name], own) if name in grads else None
                grads.setdefault(name, own)
            del own
        saved.clear()
        return None, grads

    def _hand_on(self, i, dx, now, waiting, call):
        new = now if np.may_share_memory(dx, now.array) else Gradient(dx)
        new.array = dx  # perhaps a view of it, in another shape
        if (other := waiting.get(i)) is not None:
            moment = f"{self.steps[i][0]}, sum"
            if other.is_sum:
                call(moment, np.add, other.array, new.array, out=other.array)
                new = other
            else:
                new = Gradient(call(moment, np.add, other.array, new.array))
                new.is_sum = True
        waiting[i] = new

    def statistics(self, saved):
        return {}


def conv(filters):
    return L.Conv2D(filters, 3, padding=1)


END = (("flatten_1", L.Flatten()), ("affine_1", L.Affine(10)))


def ended(*steps):
    n = len(steps)
    return Net(*steps, ("flatten_1", L.Flatten(), (n - 1,)), ("affine_1", L.Affine(10), (n,)))


NETS = {
    "a chain": ended(("conv_1", conv(8), (-1,)), ("relu_1", L.ReLU(), (0,))),
    "a residual block": ended(
        ("conv_1", conv(8), (-1,)), ("conv_2", conv(8), (0,)), ("relu_1", L.ReLU(), (1,)), ("add_1", Add(), (0, 2))
    ),
    "ReLU on both ways": ended(
        ("conv_1", conv(8), (-1,)),
        ("relu_1", L.ReLU(), (0,)),
        ("relu_2", L.ReLU(), (0,)),
        ("add_1", Add(), (1, 2)),
    ),
    "a layer that is used twice": ended(
        ("conv_1", conv(8), (-1,)), ("conv_2", conv(8), (0,)), ("relu_1", L.ReLU(), (1,)), ("conv_2", conv(8), (2,))
    ),
    "a value for three": ended(
        ("conv_1", conv(8), (-1,)),
        ("relu_1", L.ReLU(), (0,)),
        ("add_1", Add(), (0, 1)),
        ("multiply_1", Multiply(), (2, 0)),
    ),
    "twice the same input": ended(("conv_1", conv(8), (-1,)), ("multiply_1", Multiply(), (0, 0))),
    "the input itself": ended(
        ("conv_1", conv(3), (-1,)), ("add_1", Add(), (0, -1)), ("multiply_1", Multiply(), (1, -1))
    ),
    "an end that leads to nothing": ended(
        ("conv_1", conv(8), (-1,)), ("tanh_1", L.Tanh(), (0,)), ("relu_1", L.ReLU(), (0,))
    ),
}


@pytest.fixture(autouse=True, scope="module")
def quick_collections():
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("micro_batch", [None, 10])
@pytest.mark.parametrize("name", NETS)
def test_the_bill_of_any_list_of_calls_is_what_the_ledger_measures(name, micro_batch):
    net, in_shape = NETS[name], (24, 24, 3)
    params, data = net.init(in_shape, np.random.default_rng(0)), blobs(20, in_shape)
    options = {"optimizer": optim.Adam(), "micro_batch": micro_batch}
    bill = memory.bill(net, in_shape, batch_size=20, **options)
    ledger = memory.ledger(net, params, data.x, data.y, **options)
    comparison = ledger.compare(bill)
    assert comparison.agree, str(comparison)
    names = [moment.name for moment in bill.moments]
    assert {moment: p for moment, (p, m) in comparison.moments.items() if not 0 <= m - p < 32 * KIB} == {}
    assert set(ledger.moments) - {"products"} == set(names)


@pytest.mark.parametrize("name", NETS)
def test_the_gradients_of_such_a_run_are_right(name):
    net, in_shape = NETS[name], (5, 5, 2)
    if name == "the input itself":  # it adds its three channels
        in_shape = (5, 5, 3)
    rng = np.random.default_rng(0)
    params = tree.map_leaves(lambda p: p.astype(np.float64), net.init(in_shape, rng))
    x, y = rng.standard_normal((3, *in_shape)), rng.integers(0, 10, 3)
    _, grads = gradients(net, params, x, y)
    for key, p in tree.items(params):
        for _ in range(3):
            place, step, losses_there = tuple(rng.integers(0, size) for size in p.shape), 1e-6, []
            for move in (step, -2 * step):
                p[place] += move
                losses_there.append(losses.softmax_cross_entropy(net.forward(params, x)[0], y)[0])
            p[place] += step
            slope = (losses_there[0] - losses_there[1]) / (2 * step)
            assert abs(slope - tree.flatten(grads)[key][place]) < 1e-7 * max(1, abs(slope)), key


@dataclass(frozen=True)
class Scale:
    """A layer as a reader writes it: the five methods, no base; keeps its input, and makes its weight itself."""

    def init(self, in_shape, rng, dtype=np.float32):
        return {"c": np.ones(in_shape[-1:], dtype)}

    def out_shape(self, in_shape):
        return in_shape

    def forward(self, params, x, *, train=False, rng=None):
        return x * params["c"], x if train else None

    def backward(self, params, saved, dy, *, need_dx=True, overwrite_dy=False):
        return dy * params["c"], {"c": (dy * saved).reshape(-1, dy.shape[-1]).sum(axis=0)}

    def plan(self, in_shape, *, batch, dtype, train=True):
        return Plan(saves_input=train, backward_workspace=batch * int(np.prod(in_shape)) * np.dtype(dtype).itemsize)


@pytest.mark.parametrize("micro_batch", [None, 8])
def test_a_plain_class_has_a_bill_that_the_ledger_measures(micro_batch):
    model, in_shape = Sequential([conv(8), Scale(), L.ReLU(), Scale(), L.Flatten(), L.Affine(10)]), (20, 20, 3)
    params, data = model.init(in_shape, np.random.default_rng(0)), blobs(24, in_shape)
    options = {"optimizer": optim.Adam(), "micro_batch": micro_batch}
    bill = memory.bill(model, in_shape, batch_size=24, **options)
    assert {row.name: row.params for row in bill.rows}["scale_1"] == 8 * 4
    comparison = memory.ledger(model, params, data.x, data.y, **options).compare(bill)
    assert comparison.agree, str(comparison)


def test_a_sequential_gives_the_calls_of_its_layers_in_order():
    model = Sequential([L.Flatten(), Sequential([L.Affine(4), L.ReLU()])])
    calls = model.calls((2, 3), np.int64(5), "float32")
    assert [(call.number, call.name) for call in calls] == [
        (0, "flatten_1"),
        (1, "sequential_1/affine_1"),
        (2, "sequential_1/relu_1"),
    ]
    assert calls[0].inputs == (Value(-1, (5, 2, 3), np.dtype("float32")),)
    assert calls[1].inputs == (calls[0].output,) and calls[0].output == Value(0, (5, 6), np.dtype("float32"))
    assert calls[1].output.nbytes == 5 * 4 * 4
    assert calls[1].layer == L.Affine(4) and calls[1].plan.saves_inputs == (0,)
    assert owners(calls) == {-1: -1, 0: -1, 1: 1, 2: 2}
    assert not any(
        call.plan.saves_input or call.plan.saves_output for call in model.calls((2, 3), 5, "f4", train=False)
    )
    assert Value._fields == ("number", "shape", "dtype")
    assert Call._fields == ("number", "name", "layer", "inputs", "output", "plan")


def test_an_array_that_waits_is_alive_until_the_backward_of_the_first_that_keeps_it():
    calls = Sequential([L.Affine(4), L.ReLU(), L.Affine(3)]).calls((5,), 2, "float32")
    moments, found = lifetimes(calls, {"affine_1": 96, "affine_2": 60}, {}, 7)
    alive = [one[:4] for one in found]
    assert moments == [
        *("affine_1, forward", "relu_1, forward", "affine_2, forward", "loss"),
        *("affine_2, backward", "relu_1, backward", "affine_1, backward"),
    ]
    relu = 2 * 4 * 4
    assert ("saved", relu, 2, 5) in alive  # from the affine's forward on, which keeps it too, to relu's backward
    assert ("data", 2 * 5 * 4, 0, 6) in alive
    assert ("grads", 60, 4, 6) in alive and ("grads", 96, 6, 6) in alive


@dataclass(frozen=True)
class Scaled(L.Affine):
    """A layer that makes its parameters itself: one more than it declares."""

    def init(self, in_shape, rng, dtype=np.float32):
        return super().init(in_shape, rng, dtype) | {
            "scale": np.ones(100, dtype),
            "buffers": {"mean": np.ones(7, dtype)},
        }


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("layer", "in_shape"), [(L.Affine(7), (5,)), (conv(3), (9, 9, 4)), (L.BatchNorm(), (6,)), (Scaled(7), (5,))]
)
def test_parameters_are_charged_whether_they_are_declared_or_made(layer, in_shape, dtype):
    params = layer.init(in_shape, np.random.default_rng(0), np.dtype(dtype))
    bill = memory.bill(Sequential([layer]), in_shape, batch_size=2, dtype=dtype, inference=True)
    assert bill.total("params") == tree.nbytes(tree.trainable(params))
    assert bill.total("buffers") == tree.nbytes(tree.buffers(params))


def test_declared_parameters_are_not_allocated():
    with memory.traced_peak() as traced:
        memory.bill(Sequential([L.Affine(10_000)]), (10_000,), batch_size=2, inference=True)
    assert traced.peak < 64 * KIB


@pytest.mark.parametrize("optimizer", [optim.Adam8bit(), optim.Adafactor(), optim.Adam()])
def test_slots_are_charged_in_the_shapes_and_dtypes_that_the_optimizer_gives_them(optimizer):
    model = models.mlp()
    params = model.init((8, 8, 1), np.random.default_rng(0))
    slots = optimizer.init(params)
    bill = memory.bill(model, (8, 8, 1), batch_size=5, optimizer=optimizer)
    assert bill.total("slots") == tree.nbytes([slot for slot in slots.values() if not isinstance(slot, int)])
    data = blobs(5)
    assert memory.ledger(model, params, data.x, data.y, optimizer=optimizer).compare(bill).agree
