"""Pure functions in forward/backward pairs: arrays in, arrays out. No class, no state, no input or output.

    f(x, W, b, *, stride=…, out=None) -> y, or (y, kept)
    f_backward(dy, …what it needs, by name…, *, stride=…, need_dx=True, out=None) -> dx, or (dx, dW, db)

What backward needs has the name that it has in forward: an input's, `y`, or that of something kept. `out` takes the large
result, y or dx, and is returned; it is an array of that shape and dtype, in one piece in memory, and none of the inputs
unless the docstring says so. With `need_dx=False` no dx is made, and None stands in its place. The results have the dtype of
the first array; TypeError if that is not an array of floats. Everything that a kernel allocates stands in its docstring.
"""

from dlcourse.kernels.activations import (
    gelu,
    gelu_backward,
    leaky_relu,
    leaky_relu_backward,
    relu,
    relu_backward,
    sigmoid,
    sigmoid_backward,
    tanh,
    tanh_backward,
)
from dlcourse.kernels.affine import affine, affine_backward
from dlcourse.kernels.checks import floats
from dlcourse.kernels.conv import conv2d, conv2d_backward, padded_windows, transposed_windows
from dlcourse.kernels.dropout import dropout, dropout_backward
from dlcourse.kernels.norm import (
    batch_norm,
    batch_norm_backward,
    batch_norm_inference,
    layer_norm,
    layer_norm_backward,
)
from dlcourse.kernels.pool import (
    avg_pool2d,
    avg_pool2d_backward,
    index_dtype,
    max_pool2d,
    max_pool2d_backward,
    overlapping,
)
from dlcourse.kernels.sums import sum_rows
from dlcourse.kernels.windows import out_size
