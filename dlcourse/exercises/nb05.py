"""Exercises of notebook 05: convolution."""

from dlcourse.exercises import nb05_answers as answers
from dlcourse.exercises.exercise import Exercise, Wrong

EXERCISES = [
    Exercise(
        id="05.1",
        title="How many places a window has",
        reference=answers.out_size,
        inputs=answers.window_sizes,
        hints=(
            "Begin with stride 1 and no padding: 4 pixels, a window of 3. Its left edge can stand at pixel 0 and at pixel 1.",
            "The padded axis has size + 2 · padding pixels. The left edge can move to the right by at most that minus kernel.",
            "It moves in steps of stride, and a part of a step does not count: that is //. The place at 0 counts too: + 1.",
        ),
        wrong=(
            Wrong(
                answers.rounded_up,
                "You rounded up where the stride does not divide. Then the last window would reach over the end of the "
                "padded picture. A partial window is left out: round down.",
            ),
            Wrong(
                answers.padded_once,
                "You added the padding once. It is laid on both sides of the picture, so the axis has "
                "size + 2 · padding pixels.",
            ),
            Wrong(
                answers.first_forgotten,
                "You counted the steps that the window can take. The place from which it starts is one more: add 1.",
            ),
            Wrong(
                answers.kernel_forgotten,
                "You let the window start at each stride-th pixel of the whole axis. But it needs kernel pixels from its "
                "left edge on, so the edge cannot go to the end. Where is its last start?",
            ),
            Wrong(
                answers.not_whole,
                "You divided with /. A number of places is a whole number, and a part of a step does not count: // "
                "rounds down.",
            ),
        ),
    ),
    Exercise(
        id="05.2",
        title="All windows, each in a row",
        reference=answers.im2col,
        inputs=answers.pictures_and_windows,
        hints=(
            "Make an empty array (N, H', W', kh, kw, C) of the dtype of x first. Fill it, and reshape it in the last line.",
            "The simple way: loop over p and q, and copy padded[:, p·s : p·s + kh, q·s : q·s + kw] to [:, p, q].",
            (
                "The quick way: loop over i and j of the kernel. Its number (i, j) meets the pixels i, i + s, i + 2s, … of the "
                "rows and j, j + s, … of the columns: padded[:, i : i + s·H' : s, j : j + s·W' : s]."
            ),
        ),
        wrong=(
            Wrong(
                answers.channels_first,
                "In each of your rows the channel comes first, then the places of the window: (C, kh, kw). The weights are "
                "(kh, kw, C, F), so the channel must come last, or the product meets the wrong weights.",
            ),
            Wrong(
                answers.columns_before_rows,
                "Inside your rows the window goes column by column: kw before kh. The weights are (kh, kw, C, F): "
                "row by row.",
            ),
            Wrong(
                answers.windows_in_columns,
                "Your windows stand in the columns of the matrix, so it is transposed. The name says so, and some packages do "
                "it. Here each window is a row, so that x-columns @ W is a product of (places, numbers) with (numbers, F).",
            ),
            Wrong(
                answers.pictures_last,
                "Your rows go place by place, and through all pictures at each place. The output is (N, H', W', F): the "
                "picture must be the slowest axis, or a reshape mixes the pictures.",
            ),
            Wrong(
                answers.in_float64,
                "Your numbers are right and the dtype is float64: np.zeros and np.empty take it when nothing is said. "
                "Then the columns take twice the bytes. Give them the dtype of x.",
            ),
            Wrong(
                answers.not_padded,
                "You left the padding out. Lay x into an array of zeros of H + 2 · padding rows and W + 2 · padding "
                "columns first.",
            ),
            Wrong(
                answers.padded_on_all_axes,
                "np.pad(x, padding) lays a border around all four axes: you have more pictures and more channels than before. "
                "Pad the height and the width only: ((0, 0), (padding, padding), (padding, padding), (0, 0)).",
            ),
            Wrong(
                answers.every_place,
                "You have a row for each place of stride 1. The windows stand stride pixels apart: place p begins at p · stride.",
            ),
        ),
    ),
    Exercise(
        id="05.3",
        title="The bytes of a convolution, beforehand",
        reference=answers.conv_bytes,
        inputs=answers.layers,
        hints=(
            "First the number of places: N · H' · W', with the formula of exercise 05.1 for each axis.",
            "At each place the output has F numbers, and a row of the columns has kernel · kernel · C numbers.",
            "Backward needs the windows of x for dW. What can they be made from again?",
        ),
        wrong=(
            Wrong(
                answers.a_window_a_pixel,
                "You counted a window for each pixel of the input. There is one for each place, H' · W' of them, which "
                "the stride, the kernel and the padding decide.",
            ),
            Wrong(
                answers.filters_for_channels,
                "Your columns grow with the filters. A window is cut from the input: it has kernel · kernel · C numbers, "
                "however many filters look at it.",
            ),
            Wrong(
                answers.always_four,
                "You took 4 bytes for each number. That is float32; itemsize says what it is here.",
            ),
            Wrong(
                answers.one_picture,
                "Your numbers are those of one picture. These are of the whole batch: multiply by N.",
            ),
            Wrong(
                answers.keeps_columns,
                "You keep the columns. That is what the textbook layer does. They can be made again from x, so it is "
                "enough to keep x.",
            ),
            Wrong(
                answers.keeps_both,
                "You keep the output too. Look at the three gradients: y stands in none of them.",
            ),
            Wrong(
                answers.keeps_nothing,
                "You keep nothing. x is there already, but only as long as somebody holds it, and dW needs it: count its bytes.",
            ),
            Wrong(
                answers.keeps_the_border,
                "You keep x with its border. The border is zeros and can be laid again in backward: keep x without it.",
            ),
            Wrong(
                answers.keeps_weights,
                "You count the weights as kept. They stay anyway, step after step, and belong to the parameters: keep x.",
            ),
            Wrong(
                answers.kernel_once,
                "Your windows have kernel · C numbers. They are kernel pixels high and kernel pixels wide.",
            ),
        ),
        parts=("output", "columns", "kept"),
    ),
    Exercise(
        id="05.4",
        title="A fifth way",
        reference=answers.my_conv,
        inputs=answers.convolutions,
        hints=(
            (
                "Between columns (kh · kw copies of a pixel) and offsets (none) there is a middle: copy along the width only. "
                "Then a pixel is copied kw times (Cho and Brand, 2017)."
            ),
            (
                "Take one picture. Make strips (H + 2·padding, W', kw, C): strips[:, :, j] = padded[:, j : j + s·W' : s]. "
                "That is one loop over kw."
            ),
            (
                "Row i of the kernel meets the rows i, i + s, … of the strips. So add, for each i, "
                "strips[i : i + s·H' : s].reshape(H', W', kw·C) @ W[i].reshape(kw·C, F). Begin with the bias."
            ),
        ),
        wrong=(
            Wrong(
                answers.turned,
                "You turned the kernel by half a turn. That is what mathematics calls a convolution. Deep learning does not "
                "turn it: W[i, j] meets x[p + i, q + j].",
            ),
            Wrong(
                answers.bias_at_each_tap,
                "The bias is added once for each place of the kernel, kh · kw times. Add it once.",
            ),
            Wrong(answers.bias_forgotten, "The bias is missing. Each filter adds its own number to all places."),
            Wrong(
                answers.always_float64,
                "Your numbers are right, but the result is float64 for float32 inputs: np.zeros and np.empty without a dtype "
                "give float64. Use x.dtype.",
            ),
            Wrong(
                answers.padded_with_the_edge,
                "Your border repeats the pixels of the edge. Padding is a border of zeros.",
            ),
            Wrong(
                answers.side_by_side,
                "Your windows stand one pixel apart, whatever the stride is. Place p begins at pixel p · stride.",
            ),
        ),
        big=answers.a_large_convolution,
        costs=(
            (7.0, "you built the columns of the whole batch"),
            (3.5, "you hold copies of the windows of many pictures at once"),
            (1.5, "a padded copy of the whole batch, or a product as large as y: take one picture at a time"),
        ),
    ),
    Exercise(
        id="05.5",
        title="The whole gradient of a convolution",
        reference=answers.conv_backward,
        inputs=answers.gradients,
        hints=(
            "db and dW are in section 4. For dx, go the same ways as forward: where it read a pixel, add to that pixel's gradient.",
            (
                "Make zeros of the padded size. For each (i, j) of the kernel, the pixels that it meets get dy @ W[i, j].T "
                "added. They are the slice that forward reads. Last, cut the padding off."
            ),
            (
                "No columns are needed: with met = the slice of padded x for (i, j), all in rows, dW[i, j] = met.T @ dy in rows. "
                "One picture at a time, add dW up."
            ),
        ),
        wrong=(
            Wrong(
                answers.overwritten,
                "You set the pixels of dx where you should add to them. A pixel that several windows meet gets a part "
                "from each: +=, on an array that begins with zeros.",
            ),
            Wrong(
                answers.padding_not_cut,
                "Your dx has the size of the padded picture. The border was never part of x: cut it off.",
            ),
            Wrong(
                answers.kernel_turned,
                "In your dx the kernel stands the wrong way round. When dx gathers from dy, as a convolution, W must be turned "
                "by half a turn, W[::-1, ::-1]. When dy is scattered into dx, it must not be turned.",
            ),
            Wrong(
                answers.divided_by_batch,
                "You divided dW and db by the number of pictures. The loss is a mean, and dy holds its 1/N already. Divide "
                "nowhere.",
            ),
            Wrong(
                answers.bias_a_place,
                "Your db has a number for each place. The bias of a filter is added at every place of every picture, so "
                "sum over the axes 0, 1 and 2.",
            ),
            Wrong(
                answers.size_from_the_output,
                "You computed the size of dx backwards from the output. Where the stride does not divide, pixels at the end are "
                "met by no window, and your dx lacks them. Take the size of x: their gradient is 0.",
            ),
            Wrong(
                answers.stride_forgotten,
                "In your dx the windows stand side by side, one pixel apart. They stand stride pixels apart, as in forward.",
            ),
            Wrong(
                answers.cut_from_both_ends,
                "You cut the border off with padding:-padding. Without padding that is 0:-0, which is empty. Count from the "
                "front: padding : padding + H.",
            ),
        ),
        big=answers.large_gradients,
        costs=(
            (12.0, "you hold the columns of the whole batch and their gradient"),
            (6.0, "you hold the columns of the whole batch, or their gradient"),
            (1.5, "padded arrays of the whole batch: take one picture at a time"),
        ),
        parts=("dx", "dW", "db"),
    ),
]
