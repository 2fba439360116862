def out_size(size, kernel, stride, padding):
    # The left edge of the window goes from 0 to size + 2·padding − kernel, in steps of stride.
    last_start = size + 2 * padding - kernel
    return last_start // stride + 1  # + 1 for the place at 0


check("05.1", out_size)
