"""10.4  Find the place again from the step alone."""

from dlcourse.exercises.unit import solution, wrong

parts = "epoch", "start", "samples"
hints = """
- How many batches has an epoch, the short one included? Round up: -(-n // batch_size).
- divmod(step, batches) gives the epoch and the number of the batch in it, both from 0.
- start is number * batch_size; the batch ends at start + batch_size, or at n if that is less.
"""


@solution
def place(step, n, batch_size):
    """step 0, 1, 2, … of a training on n samples -> the epoch, where in its order the batch starts, how many it has."""
    epoch, number = divmod(step, -(-n // batch_size))  # rounded up: the short batch is one, too
    start = number * batch_size
    return epoch, start, min(batch_size, n - start)


@wrong
def full_batches_alone(step, n, batch_size):
    """You count full batches only. The short one at the end of an epoch is a step, too: round up."""
    epoch, number = divmod(step, max(1, n // batch_size))
    start = number * batch_size
    return epoch, start, min(batch_size, n - start)


@wrong
def across_the_epochs(step, n, batch_size):
    """You let batches run on from one epoch into the next, as if the data were one long row. Each epoch begins with a
    full batch, and ends with what is left."""
    seen = step * batch_size
    return seen // n, seen % n, min(batch_size, n - seen % n)


@wrong
def always_full(step, n, batch_size):
    """Each batch of yours has batch_size samples. The last one of an epoch has only what is left."""
    epoch, start, _ = place(step, n, batch_size)
    return epoch, start, batch_size


@wrong
def step_counted_from_1(step, n, batch_size):
    """You take the step for one that counts from 1. Step 0 is the first one: it begins at 0."""
    return place(max(0, step - 1), n, batch_size)


@wrong
def number_of_the_batch(step, n, batch_size):
    """Your start is the number of the batch. As a place in the order it is that times batch_size."""
    epoch, start, samples = place(step, n, batch_size)
    return epoch, start // batch_size, samples


@wrong
def the_end(step, n, batch_size):
    """Your third number is the place where the batch ends. It must be how many samples the batch has: that end less
    start."""
    epoch, start, samples = place(step, n, batch_size)
    return epoch, start, start + samples


def epochs_from_1(step, n, batch_size):
    epoch, start, samples = place(step, n, batch_size)
    return epoch + 1, start, samples


def one_batch_too_many(step, n, batch_size):
    epoch, number = divmod(step, n // batch_size + 1)
    return epoch, number * batch_size, min(batch_size, n - number * batch_size)


also_wrong = epochs_from_1, one_batch_too_many


def inputs(rng):
    for step in (0, 1, 2, 3, 7):
        yield f"step {step}: 10 samples in batches of 4", (step, 10, 4)
    yield "8 samples in batches of 4: no rest", (5, 8, 4)
    yield "a batch larger than the data", (3, 5, 100)
    yield "batches of one", (12, 5, 1)
    yield "the story: step 1,234 of 50,000 in batches of 100", (1234, 50_000, 100)
