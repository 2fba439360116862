"""Exercises of notebook 07: normalization."""

from dlcourse.exercises import nb07_answers as answers
from dlcourse.exercises.exercise import Exercise, Wrong

EXERCISES = [
    Exercise(
        id="07.1",
        title="The statistics of each channel",
        reference=answers.channel_statistics,
        inputs=answers.pictures,
        hints=(
            "The result has one number for each channel: shape (C,). Which axes must go?",
            "x.mean takes a tuple of axes. All but the last are tuple(range(x.ndim - 1)).",
            (
                "First the mean, then x - mean, then the mean of its squares. The square of the deviations can be written into "
                "the array of the deviations."
            ),
        ),
        wrong=(
            Wrong(
                answers.a_statistic_a_pixel,
                "Your mean is over the samples alone (axis 0), so each pixel of each channel has a statistic of its own. "
                "A filter writes its channel at every pixel: all of them belong together. Look at the axes of pictures.",
            ),
            Wrong(
                answers.one_number,
                "You have one mean for the whole array. Each channel comes from another filter and has another scale; "
                "the last axis must stay.",
            ),
            Wrong(
                answers.over_channels,
                "You took the mean over the last axis, the channels, and kept the others. That is LayerNorm, of section "
                "10. Here the last axis stays and all others go.",
            ),
            Wrong(
                answers.each_picture,
                "Each picture has statistics of its own: the axis of the samples is still there. BatchNorm goes over "
                "the batch too, so axis 0 must go with the others.",
            ),
            Wrong(
                answers.channels_first,
                "You kept axis 1. That is the channel in arrays of shape (N, C, H, W). In this course channels are last, "
                "(N, H, W, C): keep the last axis.",
            ),
            Wrong(
                answers.unbiased,
                "Your variance divides by M - 1. Normalizing takes the mean of the squares, divided by M: only then is "
                "the variance of the result 1. M - 1 comes in section 8, for the running variance.",
            ),
            Wrong(
                answers.square_minus_square,
                "You computed the variance as the mean of squares minus the square of the mean. On paper that is the "
                "same. In float32 it subtracts two large numbers that are nearly equal, and what is left is rounding. "
                "Subtract the mean first.",
            ),
            Wrong(
                answers.deviation,
                "Your second result is the standard deviation, the root of the variance. Leave the root out.",
            ),
        ),
        big=answers.large_pictures,
        costs=((1.8, "you have an array of deviations and one of their squares beside it: square in place"),),
        parts=("mean", "var"),
    ),
    Exercise(
        id="07.2",
        title="The backward pass of BatchNorm",
        reference=answers.batch_norm_backward,
        inputs=answers.gradients,
        hints=(
            "Begin with the two that are sums: dbeta sums dy, and dgamma sums dy · x̂, each over all axes but the last.",
            "The two means in dx are these sums, divided by the number M of values a channel. M is dy.size // dy.shape[-1].",
            "dx = gamma · r · (dy - dbeta / M - x̂ · dgamma / M).",
        ),
        wrong=(
            Wrong(
                answers.constants,
                "Your dx is gamma · r · dy: it takes mean and variance for constants. Both are computed from x, so each "
                "x moves all outputs of its channel. Two terms are missing; see the three ways in section 6.",
            ),
            Wrong(
                answers.without_mean,
                "The way through the mean is missing in dx: subtract the mean of dy over the channel. Test: when all x of "
                "a channel move alike, y does not move, so dx must sum to 0 in each channel.",
            ),
            Wrong(
                answers.without_variance,
                "The way through the variance is missing in dx: the term with x̂. A check with dy equal to 1 everywhere "
                "cannot see it, since x̂ sums to 0; a random dy does.",
            ),
            Wrong(
                answers.sums_for_means,
                "You subtract sums in dx where means belong. Mean and variance are sums divided by M, and so are the "
                "terms that come back through them.",
            ),
            Wrong(
                answers.without_gamma,
                "dx lacks gamma. y is gamma · x̂ + beta, so what arrives at x̂ is gamma · dy.",
            ),
            Wrong(
                answers.by_samples,
                "You divide by the number of samples. A channel of pictures has N · H · W values: M is "
                "dy.size // dy.shape[-1]. For pictures of 1 × 1 the two are the same, which hides it.",
            ),
            Wrong(
                answers.without_r,
                "dx lacks r. x̂ is x - mean, multiplied by r, so what comes back through it is multiplied by r too.",
            ),
            Wrong(
                answers.without_x_hat,
                "The last term of dx is x̂ times a mean. You subtract the mean of g · x̂ alone, the same number in the "
                "whole channel.",
            ),
            Wrong(
                answers.over_samples,
                "You sum over the samples alone (axis 0). For pictures, rows and columns belong to a channel as well: "
                "dgamma and dbeta are (C,). Sum over all axes but the last.",
            ),
            Wrong(
                answers.gamma_in_the_parameters,
                "dgamma and dbeta hold gamma once too often: you summed gamma · dy. gamma is on the way to x, and not on "
                "the way to gamma and beta. Sum dy · x̂ and dy.",
            ),
            Wrong(
                answers.means_of_parameters,
                "dgamma and dbeta are divided by M. They are plain sums: gamma was spread over all values of its channel, "
                "and what was spread is summed back. A mean over the batch is in dy already.",
            ),
        ),
        big=answers.large_gradients,
        costs=(
            (
                2.5,
                "at one moment you had three arrays like x or more: write the products into an array that is there (out=)",
            ),
            (1.5, "at one moment you had two arrays like x: the product with x̂ can be written into dx (out=dx)"),
        ),
        parts=("dx", "dgamma", "dbeta"),
    ),
    Exercise(
        id="07.3",
        title="The running statistics",
        reference=answers.running_statistics,
        inputs=answers.running,
        hints=(
            "Momentum is the share of the way that the running number goes towards the new one: 0 stays, 1 jumps.",
            "running + momentum · (new - running). For the variance, new is the unbiased one: var · count / (count - 1).",
            "Return two new arrays, and change none that you were given.",
        ),
        wrong=(
            Wrong(
                answers.biased,
                "Your running variance goes towards the variance of the batch itself. That one is too small on average, by "
                "the factor (count - 1) / count, since it was measured around the batch's own mean. Multiply by "
                "count / (count - 1).",
            ),
            Wrong(
                answers.swapped,
                "You use momentum as the share that stays. Some libraries do (Keras). Here it is the share of the way to "
                "the new value: running + momentum · (new - running).",
            ),
            Wrong(
                answers.wrong_way,
                "The factor of the variance stands upside down: the variance of a batch is too small, so it has to grow, "
                "by count / (count - 1).",
            ),
            Wrong(
                answers.only_the_batch,
                "Your result is the statistics of this batch alone: momentum does nothing. They should move a part of the "
                "way and remember earlier batches.",
            ),
            Wrong(
                answers.added_up,
                "You add a part of the new value and take nothing of the old one away, so the numbers grow from step to "
                "step. Move by momentum times the difference.",
            ),
            Wrong(
                answers.in_place,
                "Your function changes the arrays that it was given and returns None. Here it returns two new arrays. In a "
                "layer, in place is right; there it must happen once a step.",
            ),
        ),
        parts=("running_mean", "running_var"),
    ),
    Exercise(
        id="07.4",
        title="Fold BatchNorm into the layer before it",
        reference=answers.fold,
        inputs=answers.layers,
        hints=(
            "Write BatchNorm of one channel as y = s · z + t with s = gamma / √(var + eps), and put z = x W + b in.",
            "y = x (W s) + (b - mean) s + beta. So what is the new W, what is the new b?",
            "The channels of the output are the last axis of W, so W * s multiplies the right axis, for a convolution too.",
        ),
        wrong=(
            Wrong(answers.fold_by_variance, "You divide by the variance. BatchNorm divides by its root, √(var + eps)."),
            Wrong(
                answers.eps_outside,
                "eps stands outside of the root. It belongs inside, √(var + eps), as in the forward pass; where the "
                "variance is small the two differ by much.",
            ),
            Wrong(
                answers.bias_unscaled,
                "The bias b comes before the normalization, so it is multiplied by the scale too: (b - mean) · s + beta.",
            ),
            Wrong(
                answers.bias_forgotten,
                "The bias b of the layer is lost. The normalized number is x W + b - mean.",
            ),
            Wrong(
                answers.mean_unscaled,
                "The mean is subtracted before the scaling, so it is multiplied by the scale too: (b - mean) · s + beta.",
            ),
            Wrong(
                answers.mean_forgotten,
                "The mean of BatchNorm is lost. It is subtracted from x W + b before the scaling: (b - mean) · s + beta.",
            ),
            Wrong(
                answers.rows_scaled,
                "You scale the rows of W, its inputs. gamma belongs to the outputs, the last axis of W. With as many "
                "inputs as outputs the shapes fit all the same.",
            ),
        ),
        parts=("W", "b"),
    ),
    Exercise(
        id="07.5",
        title="The statistics of two parts together",
        reference=answers.join_statistics,
        inputs=answers.parts,
        hints=(
            "The mean of the whole is the mean of the two means, each weighted by its share of the values.",
            (
                "Take [1, 3] and [5, 7]: both variances are 1, and the whole has 5. What is missing is how far the two means "
                "are from the common one."
            ),
            (
                "With the shares a = count_a / (count_a + count_b) and b = 1 - a: var = a · var_a + b · var_b + "
                "a · b · (mean_a - mean_b)²."
            ),
        ),
        wrong=(
            Wrong(
                answers.plain_means,
                "You average means and variances. For [1, 3] and [5, 7] that gives a variance of 1, and the whole has 5. "
                "How far the two means lie apart has to come in, and parts of unequal size must be weighted.",
            ),
            Wrong(
                answers.mean_of_variances,
                "The mean is right. The variance holds the spread inside the parts, but not between them: the two means "
                "differ, and that is spread too.",
            ),
            Wrong(
                answers.halves,
                "You treat the two parts as equally large. Weight each by its number of values.",
            ),
            Wrong(
                answers.sum_of_variances,
                "You add the two variances. Variances add up where independent numbers are added; here two groups are put "
                "together. Each group counts by its share, and the distance of the means comes in.",
            ),
            Wrong(
                answers.divided_once,
                "The term with the two means is too large, by the number of all values. count_a · count_b / (count_a + "
                "count_b) · (mean_a - mean_b)² belongs to a sum of squares; a variance divides it by that number once more.",
            ),
            Wrong(
                answers.statistics_of_means,
                "Your variance is that of the two means. The spread inside each part has to come in too, weighted by its "
                "share.",
            ),
        ),
        parts=("mean", "var"),
    ),
]
