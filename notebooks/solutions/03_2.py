def affine_backward(dy, x, W):
    """dy (N, D_out), x (N, D_in), W (D_in, D_out) -> dx (N, D_in), dW (D_in, D_out), db (D_out,)."""
    dx = dy @ W.T  # sums over k, the outputs
    dW = x.T @ dy  # sums over n, the samples
    db = dy.sum(axis=0)
    return dx, dW, db


check("03.2", affine_backward)
