def conv_bytes(x_shape, filters, kernel, stride, padding, itemsize):
    n, h, w, channels = x_shape
    out_h = (h + 2 * padding - kernel) // stride + 1
    out_w = (w + 2 * padding - kernel) // stride + 1
    places = n * out_h * out_w
    output = places * filters * itemsize
    columns = places * kernel * kernel * channels * itemsize  # a row for each place, whatever the filters
    kept = n * h * w * channels * itemsize  # x: the columns can be made from it again
    return output, columns, kept


check("05.3", conv_bytes)
