"""14.3  What counting cannot free."""

from dlcourse.exercises.unit import solution, wrong

hints = """
- First what a name leads to: that stays, and rightly so. Then play reference counting on the rest.
- An object goes when nothing that is still there refers to it. When it goes, what it refers to may be next: so go
  round until nothing more goes.
- What is left is in a cycle, or hangs on one. Names themselves count as references.
"""


def reached(refers, names):
    found, waiting = set(), list(names)
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += refers[one]
    return found


@solution
def left_over(refers, names):
    """refers: {object: [objects that it refers to]}; names: the objects that have a name -> a sorted list of those that no
    name leads to, and that reference counting does not free."""
    left = set(refers)
    while True:
        referred = {other for one in left for other in refers[one]} | set(names)
        if left <= referred:
            break
        left &= referred  # who has no reference goes, and with it the references that it had
    reachable, waiting = set(), list(names)
    while waiting:
        one = waiting.pop()
        if one not in reachable:
            reachable.add(one)
            waiting += refers[one]
    return sorted(left - reachable)


@wrong
def all_without_a_name(refers, names):
    """You list all that no name leads to. Most of that goes at once: where nothing refers to an object, it is freed, and
    then what only it referred to."""
    return sorted(set(refers) - reached(refers, names))


@wrong
def only_the_cycle(refers, names):
    """You list what is in a cycle. What hangs on a cycle stays too, and mostly that is the array."""
    lost = set(refers) - reached(refers, names)
    return sorted(one for one in lost if one in reached(refers, refers[one]))


@wrong
def one_round(refers, names):
    """You go round once. When an object goes, what only it referred to is next: go on until nothing more goes."""
    referred = {other for one in refers for other in refers[one]}
    return sorted((set(refers) - reached(refers, names)) & referred)


@wrong
def not_itself(refers, names):
    """You pass over a reference of an object to itself. It counts as any other: an object that holds itself stays."""
    return left_over({one: [other for other in others if other != one] for one, others in refers.items()}, names)


@wrong
def cycles_that_have_a_name(refers, names):
    """You list cycles that a name leads to. Those are in use, and no leak: nothing is wrong with a cycle that is needed."""
    left = set(refers)
    for _ in refers:
        left &= {other for one in left for other in refers[one]}
    return sorted(left)


@wrong
def with_the_names(refers, names):
    """You list also what has a name. That is in use: asked is what nobody can reach."""
    return sorted({*left_over(refers, names), *reached(refers, names)})


def nothing(refers, names):
    return []


also_wrong = (nothing,)


def inputs(rng):
    trainer = {"trainer": ["callbacks", "columns"], "callbacks": ["method"], "method": ["trainer"], "columns": []}
    yield "a trainer whose callback is its own method", (trainer, [])
    yield "the same, and it has a name", (trainer, ["trainer"])
    chain = {"first": ["second"], "second": ["third"], "third": []}
    yield "a chain without a cycle", (chain, [])
    yield (
        "a chain that leads into a cycle",
        (chain | {"third": ["a"], "a": ["b"], "b": ["a", "array"], "array": []}, []),
    )
    yield "an object that holds itself", ({"list": ["list", "array"], "array": [], "x": []}, ["x"])
    both = {"a": ["b"], "b": ["a", "shared"], "shared": [], "name": ["shared", "c"], "c": ["name"]}
    yield "a lost cycle and one in use", (both, ["name"])
    yield "nothing at all", ({}, [])
