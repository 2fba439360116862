def affine_bytes(inputs, outputs):
    """An affine layer in float32, trained by Adam -> bytes of its parameters, gradients and slots."""
    numbers = inputs * outputs + outputs  # a weight from each input to each output, and a bias for each output
    params = 4 * numbers
    return params, params, 2 * params  # one gradient and two slots for each parameter


check("00.2", affine_bytes)
