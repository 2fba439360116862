"""13.3  What the names keep alive."""

from dlcourse.exercises.unit import solution, wrong

hints = """
- Start with the records that have a name. Add what they hold, then what those hold, until nothing is new.
- Keep a set of the records that you have seen. A record in it is not looked at again: two may hold each other.
- seen, waiting = set(), list(names); while waiting: take one; if it is new, put it into seen and its holds into waiting.
"""


@solution
def kept_alive(names, holds, sizes):
    """names: a list; holds: {record: [records]}; sizes: {record: bytes} -> bytes that the names keep alive."""
    seen, waiting = set(), list(names)
    while waiting:
        record = waiting.pop()
        if record not in seen:  # each record counts once, whoever leads to it
            seen.add(record)
            waiting.extend(holds.get(record, []))
    return sum(sizes[record] for record in seen)


def reached(names, holds):
    seen, waiting = set(), list(names)
    while waiting:
        record = waiting.pop()
        if record not in seen:
            seen.add(record)
            waiting.extend(holds.get(record, []))
    return seen


@wrong
def everything(names, holds, sizes):
    """You add up all records. One that no name leads to is gone, even if it holds others, even if it holds itself."""
    return sum(sizes.values())


@wrong
def named_alone(names, holds, sizes):
    """You count the records with a name. What they hold is alive as well: that is how a loss of 24 bytes keeps a MiB."""
    return sum(sizes[record] for record in set(names))


@wrong
def one_level(names, holds, sizes):
    """You go one level deep. Those that are held hold others in turn: the history holds losses, they the network, it the
    arrays."""
    near = {held for record in names for held in holds.get(record, [])}
    return sum(sizes[record] for record in near | set(names))


@wrong
def once_for_each_holder(names, holds, sizes):
    """You count a record once for each that holds it. It is in memory once, however many lead to it."""
    seen = reached(names, holds)
    held = [*names, *(one for record in seen for one in holds.get(record, []))]
    return sum(sizes[record] for record in held)


@wrong
def the_named_forgotten(names, holds, sizes):
    """You count what the named records hold, and not the named records themselves."""
    return sum(sizes[record] for record in reached(names, holds) - set(names))


@wrong
def whoever_is_held(names, holds, sizes):
    """You count each record that some other one holds. Two records that hold each other and have no name are garbage: the
    collector frees them."""
    held = {one for ones in holds.values() for one in ones}
    return sum(sizes[record] for record in held | set(names))


def how_many(names, holds, sizes):
    return len(reached(names, holds))


def the_largest(names, holds, sizes):
    return max((sizes[record] for record in reached(names, holds)), default=0)


def first_name(names, holds, sizes):
    return kept_alive(names[:1], holds, sizes)


also_wrong = how_many, the_largest, first_name


def inputs(rng):
    yield "a history with two losses of one network", ([1], {1: [2, 3], 2: [4], 3: [4]}, {1: 8, 2: 24, 3: 24, 4: 1000})
    yield (
        "two names, an old record that nobody has",
        ([1, 2], {1: [4], 2: [4], 3: [5]}, {1: 1, 2: 2, 3: 4, 4: 8, 5: 16}),
    )
    yield "a cycle with a name", ([1], {1: [2], 2: [3], 3: [1]}, {1: 5, 2: 6, 3: 7, 4: 100})
    yield "a cycle without one", ([1], {2: [3], 3: [2]}, {1: 5, 2: 60, 3: 70})
    yield "no names", ([], {1: [2]}, {1: 3, 2: 4})
