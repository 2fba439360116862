"""14.2  Walk down to the owner."""

from dlcourse.exercises.unit import solution, wrong

hints = """
- Go down level by level: first all that have a name, then all that these refer to, and so on.
- Keep for each object the way that led to it. The first way that is found is a shortest one: do not replace it.
- A list of ways in the order in which they were found; take the first, add a way for each child not yet seen.
"""


@solution
def way_to(refers, names, array):
    """refers: {object: [objects that it refers to]}; names: where a walk may begin -> the shortest way, a list from a name
    to `array`, both included; of two equally short ones the first. [] if none leads there."""
    ways, seen = [[name] for name in names], set(names)
    for way in ways:  # it grows while we go through it: level by level
        if way[-1] == array:
            return way
        for child in refers[way[-1]]:
            if child not in seen:  # else a cycle would never end
                seen.add(child)
                ways.append([*way, child])
    return []


def deep(refers, names, array):
    ways, seen = [[name] for name in reversed(names)], set()
    while ways:
        way = ways.pop()
        if way[-1] == array:
            return way
        if way[-1] not in seen:
            seen.add(way[-1])
            ways += [[*way, child] for child in reversed(refers[way[-1]])]
    return []


@wrong
def first_that_comes(refers, names, array):
    """You follow one way to its end before you try the next. What you find leads there, but a reader wants the shortest:
    go down level by level."""
    return deep(refers, names, array)


@wrong
def backwards(refers, names, array):
    """Your way runs from the array to the name. It is the right one: turn it round."""
    return way_to(refers, names, array)[::-1]


@wrong
def without_the_array(refers, names, array):
    """The array itself is missing at the end of your way."""
    return way_to(refers, names, array)[:-1]


@wrong
def one_level(refers, names, array):
    """You look at what the names refer to, and no deeper. Holders hold holders: go on down."""
    if array in names:
        return [array]
    return next(([name, array] for name in names if array in refers[name]), [])


@wrong
def first_name_only(refers, names, array):
    """You begin at the first name alone. Any of them may lead to the array, and another one on a shorter way."""
    return way_to(refers, names[:1], array)


@wrong
def up_to_whoever_holds(refers, names, array):
    """You go up from the array to whoever holds it, and do not ask whether a name is at the other end. A cycle that is
    lost would be named as the owner."""
    way = [array]
    while way[0] not in names:
        above = next((one for one, others in refers.items() if way[0] in others and one not in way), None)
        if above is None:
            break
        way.insert(0, above)
    return way


def without_the_name(refers, names, array):
    return way_to(refers, names, array)[1:]


also_wrong = (without_the_name,)


def inputs(rng):
    room = {
        "step": ["cell"], "cell": ["history"], "history": ["loss", "cell"], "loss": ["saved"], "saved": ["x"], "x": [],
        "Out": ["leaks"], "leaks": ["saved"],
    }  # fmt: skip
    yield "two ways, and the second name's is shorter", (room, ["step", "Out"], "x")
    yield "from one name", (room, ["step"], "x")
    yield "one name leads to it by two ways", ({"a": ["b", "x"], "b": ["x"], "x": []}, ["a"], "x")
    yield "the array has a name", (room, ["Out", "x"], "x")
    yield "no name leads there", ({"a": ["a"], "b": ["c"], "c": ["b", "x"], "x": []}, ["a"], "x")
    yield "a cycle on the way", ({"a": ["b"], "b": ["c", "a"], "c": ["b", "x"], "x": []}, ["a"], "x")
    yield "two equally short ways", ({"a": ["b", "c"], "b": ["x"], "c": ["x"], "x": []}, ["a"], "x")
