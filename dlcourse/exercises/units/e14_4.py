"""14.4  What is really kept."""

from dlcourse.exercises.unit import solution, wrong

hints = """
- Only an array that owns memory has bytes. Ask of each array that is held: whose memory is it?
- `base, size = arrays[name]`; while base is not None, go on to that one. Where it is None, this one owns its memory.
- Two views of one owner keep it alive together: put the owners into a set, then add up.
"""


@solution
def kept_alive(arrays, held):
    """arrays: {name: (name of what it is a view of, or None; its bytes)}; held: names -> bytes that stay alive."""
    owners = set()  # each counts once, however many views there are
    for name in held:
        while arrays[name][0] is not None:
            name = arrays[name][0]
        owners.add(name)
    return sum(arrays[name][1] for name in owners)


@wrong
def own_bytes(arrays, held):
    """You add up the bytes of what is held. A view has none of its own: it keeps the whole array alive that it looks at."""
    return sum(arrays[name][1] for name in held)


@wrong
def one_step_up(arrays, held):
    """You go up one step. A view may be of a view: go on until an array owns its memory."""
    return sum(arrays[one][1] for one in {arrays[name][0] or name for name in held})


@wrong
def an_owner_for_each(arrays, held):
    """You count an owner once for each of its views. It is one block of memory, however many views there are."""
    return sum(kept_alive(arrays, [name]) for name in held)


@wrong
def view_and_owner(arrays, held):
    """You count the view and its owner. The bytes of a view lie inside those of the owner."""
    own = sum(arrays[name][1] for name in set(held) if arrays[name][0] is not None)
    return own + kept_alive(arrays, held)


@wrong
def everything(arrays, held):
    """You count owners that nobody holds. They are freed when their last name goes."""
    return sum(size for base, size in arrays.values() if base is None)


@wrong
def only_owners_by_name(arrays, held):
    """You pass over the views. Each of them holds its owner, also where the owner itself has no name any more."""
    return sum(arrays[name][1] for name in set(held) if arrays[name][0] is None)


def largest(arrays, held):
    return max((kept_alive(arrays, [name]) for name in held), default=0)


also_wrong = (largest,)


def inputs(rng):
    batch = {"batch": (None, 786_432), "picture": ("batch", 12_288), "other": (None, 500)}
    yield "a picture of a batch", (batch, ["picture"])
    yield "a view and its owner", (batch, ["picture", "batch"])
    yield "an array of its own", (batch, ["other"])
    rows = {f"row_{n}": ("batch", 100) for n in range(3)} | {"batch": (None, 6_400)}
    yield "three views of one array", (rows, list(rows)[:3])
    chain = {"all": (None, 9_000), "half": ("all", 4_500), "row": ("half", 300), "alone": (None, 70)}
    yield "a view of a view", (chain, ["row", "alone"])
    yield "two ways to one owner", (chain, ["row", "half"])
    yield "nothing is held", (chain, [])
