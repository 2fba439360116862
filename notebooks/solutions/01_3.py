def scale_backward(dy, x, b):
    """The backward pass of y = x * b.  dy and x have one shape, b is spread to it -> dx like x, db like b."""
    lengths = (1,) * (dy.ndim - b.ndim) + b.shape
    spread = tuple([axis for axis in range(dy.ndim) if lengths[axis] == 1])
    db = (dy * x).sum(axis=spread).reshape(b.shape)  # multiply first: each place has its own x
    return dy * b, db


check("01.3", scale_backward)
