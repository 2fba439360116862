def early_stop(losses, patience):
    """losses: validation loss after epoch 1, 2, …; stop after `patience` epochs without a new best -> epochs, best epoch."""
    best, best_epoch = float("inf"), 0
    for epoch, loss in enumerate(losses, 1):
        if loss < best:
            best, best_epoch = loss, epoch
        elif epoch - best_epoch == patience:  # so many epochs in a row were no better
            return epoch, best_epoch
    return len(losses), best_epoch


check("10.3", early_stop)
