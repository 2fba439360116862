"""What a layer will allocate, known from its configuration and the shapes alone."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """The bytes of one layer for one (micro-)batch. The input, the output and their gradients follow from the shapes
    and are not repeated here.

    saves_input, saves_output: backward keeps the layer's input or output itself. A neighbour may keep the same array;
        it is counted once.
    own: bytes of what is kept for backward besides these two (an index, a mask, statistics).
    forward_workspace: the most bytes alive at one moment of `forward` beyond input, parameters, output and `own`.
    backward_workspace: the most bytes alive at one moment of `backward` beyond what was saved, dy, dx and the gradients.
    first_backward_workspace: the same in the first layer of a network, where no dx is made; None if it is the same.
    output_is_input: the output shares the input's memory (Flatten, Dropout outside training).
    dx_is_dy: backward writes dx over dy if it may, so the two are one array.
    saves_inputs: which inputs backward keeps, by position; `saves_input=True` is short for (0,).
    """

    saves_input: bool = False
    saves_output: bool = False
    own: int = 0
    forward_workspace: int = 0
    backward_workspace: int = 0
    first_backward_workspace: int | None = None
    output_is_input: bool = False
    dx_is_dy: bool = False
    saves_inputs: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        inputs = (0,) if self.saves_input and not self.saves_inputs else tuple(self.saves_inputs)
        object.__setattr__(self, "saves_inputs", inputs)  # the plan is frozen
        object.__setattr__(self, "saves_input", bool(inputs))
