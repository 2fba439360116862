"""10.3  When to stop."""

from dlcourse.exercises.unit import solution, wrong

parts = "epochs trained", "best epoch"
hints = """
- Go through the losses and remember the best one and its epoch. Count how many epochs ago that was.
- After epoch e (counted from 1) with the best at epoch b: stop if e - b == patience.
- If nothing stops it, all epochs were trained. Equal to the best is not better.
"""


@solution
def early_stop(losses, patience):
    """losses: validation loss after epoch 1, 2, …; stop after `patience` epochs without a new best -> epochs, best epoch."""
    best, best_epoch = float("inf"), 0
    for epoch, loss in enumerate(losses, 1):
        if loss < best:
            best, best_epoch = loss, epoch
        elif epoch - best_epoch == patience:  # so many epochs in a row were no better
            return epoch, best_epoch
    return len(losses), best_epoch


def run(losses, patience, better=lambda loss, best, last: loss < best, worse_in_all=False):
    best, last, best_epoch, waited = float("inf"), float("inf"), 0, 0
    for epoch, loss in enumerate(losses, 1):
        if better(loss, best, last):
            best, best_epoch, waited = loss, epoch, waited if worse_in_all else 0
        else:
            waited += 1
            if waited == patience:
                return epoch, best_epoch
        last = loss
    return len(losses), best_epoch


@wrong
def against_the_epoch_before(losses, patience):
    """You compare with the epoch before. A loss that goes up and a little down each time is never worse twice in a row.
    Compare with the best so far."""
    return run(losses, patience, better=lambda loss, best, last: loss < last)


@wrong
def all_bad_epochs(losses, patience):
    """You count all epochs without a new best. Count those since the best one: each new best starts again at 0."""
    return run(losses, patience, worse_in_all=True)


@wrong
def one_more(losses, patience):
    """You wait for one epoch more than `patience`. With a patience of 1 the first epoch without a new best ends it."""
    return early_stop(losses, patience + 1)


@wrong
def the_last_one(losses, patience):
    """Your second number is the last epoch. It must be the epoch of the best loss: its parameters are the ones to keep."""
    epochs, _ = early_stop(losses, patience)
    return epochs, epochs


@wrong
def equal_is_better(losses, patience):
    """You take an equal loss for a new best. A loss that stands still would then be trained for ever."""
    return run(losses, patience, better=lambda loss, best, last: loss <= best)


@wrong
def best_of_all(losses, patience):
    """You look for the best of all losses first. A training does not know the losses to come: go through them one by one,
    and stop at the first place that the patience allows."""
    best = losses.index(min(losses)) + 1
    return min(len(losses), best + patience), best


also_wrong = (
    lambda losses, patience: tuple(number - 1 for number in early_stop(losses, patience)),
    lambda losses, patience: (len(losses), early_stop(losses, len(losses) + 1)[1]),
    lambda losses, patience: (early_stop(losses, patience)[1],) * 2,
)


def inputs(rng):
    yield "falls, then rises; patience 2", ([0.9, 0.5, 0.6, 0.7, 0.3], 2)
    yield "up and down; patience 2", ([0.5, 0.7, 0.6, 0.65, 0.55, 0.4], 2)
    yield "two pauses, each shorter than the patience", ([0.9, 0.95, 0.8, 0.85, 0.7, 0.75, 0.6], 2)
    yield "stands still", ([0.5, 0.5, 0.5, 0.5], 2)
    yield "always better", ([0.3, 0.2, 0.1], 1)
    yield "patience 1", ([0.3, 0.4, 0.1], 1)
    yield "one epoch", ([0.3], 5)
