"""02.3  Usage per cent."""

from dlcourse.exercises.unit import solution, wrong

MIB = 2**20
hints = """
- Two questions: how much did the allocator take from the system, and how much of that is in use? Both have two parts,
  the heap and the mappings.
- A mapping belongs to one array and goes back when the array is freed. So all of it is in use, and all of it was taken.
- `100 * (used + mapped) / (heap + mapped)`, and 100 where nothing was taken.
"""


@solution
def usage_percent(heap, used, holes, mapped):
    """Four numbers of bytes from the allocator -> the share in use of all that it took from the system, in per cent."""
    taken = heap + mapped
    if taken == 0:
        return 100.0  # nothing taken, nothing wasted
    return 100 * (used + mapped) / taken  # a mapping belongs to one array, so all of it is in use


@wrong
def heap_alone(heap, used, holes, mapped):
    """This is the usage of the heap alone. Mappings were taken from the system too, and they are in use."""
    return 100 * used / heap if heap else 100.0


@wrong
def mapped_below_only(heap, used, holes, mapped):
    """Mappings count as taken here and not as in use. So every large array would look like waste."""
    return 100 * used / (heap + mapped) if heap + mapped else 100.0


@wrong
def mapped_above_only(heap, used, holes, mapped):
    """Mappings count as in use here and not as taken. So the usage can go above 100 %."""
    return 100 * (used + mapped) / heap if heap else 100.0


@wrong
def divides_by_zero(heap, used, holes, mapped):
    """Where nothing was taken from the system yet, this divides by zero. Nothing is wasted then: 100 %."""
    return 100 * (used + mapped) / (heap + mapped)


also_wrong = (
    lambda heap, used, holes, mapped: 100 * holes / (heap + mapped) if heap + mapped else 0.0,
    lambda heap, used, holes, mapped: usage_percent(heap, used, holes, mapped) / 100,
)


def inputs(rng):
    yield "nothing mapped, half of the heap in use", (100 * MIB, 50 * MIB, 50 * MIB, 0)
    yield "a heap full of holes beside one large array", (100 * MIB, 20 * MIB, 80 * MIB, 64 * MIB)
    yield "everything in use", (10 * MIB, 10 * MIB, 0, 5 * MIB)
    yield "an empty heap that was not given back", (30 * MIB, 0, 30 * MIB, 0)
    yield "only mappings", (0, 0, 0, 64 * MIB)
    yield "nothing taken yet: nothing is wasted", (0, 0, 0, 0)
