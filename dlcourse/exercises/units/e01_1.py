"""01.1  What a copy would set free."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- There are two states to compare. Before: which arrays stay alive because of this list? After: what do the copies take?
- Before are the owners, each once, even where several views look into it. `held` of this section counts them.
- After, each array has memory of its own, of `a.nbytes` bytes. So it is `held(arrays)` minus the sum of `nbytes`, and
  this can be negative.
"""


@solution
def freed_by_copies(arrays):
    """Bytes that become free when each array of the list is replaced by a copy -> int, negative if copies take more."""
    owners = {}
    for a in arrays:
        strip = a
        while strip.base is not None:
            strip = strip.base
        owners[id(strip)] = strip.nbytes  # several views of one array make one entry
    return sum(owners.values()) - sum(a.nbytes for a in arrays)


class Views(list):
    """A list of arrays whose copy holds the same arrays: a copied view would own its memory."""

    def __deepcopy__(self, memo):
        return Views(self)


def owner(a):
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a


@wrong
def owner_for_each_view(arrays):
    """You count an owner once for each of its views. It is one strip of memory, and it becomes free once. Collect the
    owners by `id` first."""
    return sum(owner(a).nbytes - a.nbytes for a in arrays)


@wrong
def copies_are_free(arrays):
    """This is what becomes free, but the copies are there now, and they take memory too. Subtract their `nbytes`."""
    owners = {id(owner(a)): owner(a) for a in arrays}
    return sum(a.nbytes for a in owners.values())


@wrong
def never_negative(arrays):
    """Right, where something becomes free. Where views overlap, or an array is spread, the copies take more than the
    one owner did. Then the answer is negative, and worth knowing."""
    return max(0, freed_by_copies(arrays))


@wrong
def set_of_sizes(arrays):
    """You collect sizes in a set, so two different owners of the same size count as one. Two objects are the same if
    their `id` is the same, not if their sizes are."""
    return sum({owner(a).nbytes for a in arrays}) - sum(a.nbytes for a in arrays)


@wrong
def largest_owner(arrays):
    """You count the largest owner alone. Each owner that the list keeps alive counts, once."""
    return max(owner(a).nbytes for a in arrays) - sum(a.nbytes for a in arrays)


also_wrong = (lambda arrays: -freed_by_copies(arrays),)


def inputs(rng):
    big = np.ones((256, 1024), np.float32)
    yield "one array that is no view", (Views([np.ones(100)]),)
    yield "ten numbers of an array of 1 MiB", (Views([np.ones((256, 1024), np.float32)[0, :10]]),)
    yield "two rows of the same array", (Views([big[0], big[1]]),)
    yield "a view of a view of a view", (Views([big[10:][:5].T[3:]]),)
    yield "an array and its transpose: copies would take more", (Views([big, big.T]),)
    yield "a row from each of two arrays of the same size", (Views([np.ones((8, 8))[0], np.ones((8, 8))[0]]),)
    yield "a bias that is spread to 1,000 rows", (Views([np.broadcast_to(np.ones(4), (1000, 4))]),)
    yield "a row from each of two arrays, one twice as large", (Views([np.ones((8, 8))[0], np.ones((16, 8))[0]]),)
    yield "the same view twice: two copies", (Views([big[0, :9]] * 2),)
