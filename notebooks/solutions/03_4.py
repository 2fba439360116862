from itertools import pairwise


def affine_bytes(widths, batch, itemsize):
    """-> bytes of all W and b, bytes of the inputs that the layers keep for backward."""
    params = saved = 0
    for d_in, d_out in pairwise(widths):  # 784 and 512, 512 and 10
        params += d_in * d_out + d_out
        saved += batch * d_in
    return params * itemsize, saved * itemsize


check("03.4", affine_bytes)
