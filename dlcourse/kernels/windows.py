"""Windows that slide over images (N, H, W, C): sizes, and which pixels each place of the window meets."""

from collections.abc import Iterator

Pair = tuple[int, int]


def out_size(size: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> int:
    """How many places a window of `kernel` taps has along an axis of `size` pixels; a last partial one is left out."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def taps(
    in_hw: Pair, out_hw: Pair, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair = (1, 1)
) -> Iterator[tuple[int, int, tuple[slice, slice, slice], tuple[slice, slice, slice]]]:
    """For each tap (i, j) of the window: (i, j, outputs, pixels), two indices for arrays (N, H, W, …). Output o of
    `outputs` meets pixel o of `pixels` at that tap; what would meet the padding is left out of both."""
    for i in range(kernel[0]):
        out_h, in_h = offset(i * dilation[0], in_hw[0], out_hw[0], stride[0], padding[0])
        for j in range(kernel[1]):
            out_w, in_w = offset(j * dilation[1], in_hw[1], out_hw[1], stride[1], padding[1])
            yield i, j, (slice(None), out_h, out_w), (slice(None), in_h, in_w)


def offset(place: int, size: int, out: int, stride: int, padding: int) -> tuple[slice, slice]:
    """Which outputs meet a pixel at `place` from their window's beginning, and which pixels: two slices."""
    shift = place - padding  # output o meets pixel o · stride + shift
    first = max(0, -(shift // stride))
    last = min(out - 1, (size - 1 - shift) // stride)
    if last < first:
        return slice(0, 0, 1), slice(0, 0, 1)
    return slice(first, last + 1, 1), slice(first * stride + shift, last * stride + shift + 1, stride)
