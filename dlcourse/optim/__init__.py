"""Optimizers: each changes the parameters in place, given their gradients and its slots.

    opt = Adam(lr=1e-3)
    slots = opt.init(params)                # {"step": 0, "m": zeros like params, "v": zeros like params}
    opt.update(params, grads, slots)        # changes params and slots, leaves grads as they are

An optimizer is configuration (a frozen dataclass) and a rule: how one block of a parameter and of its slots changes.
`update` walks through every array in blocks of `BLOCK_NUMBERS` and hands them to the rule, so its only temporaries are a
few blocks, however large the parameters are. Definitions and defaults are those of PyTorch.

`weight_decay` adds weight_decay · p to the gradient (L2); in AdamW it shrinks p directly.
What stands under a "buffers" key in params is passed over.
"""

from dlcourse.optim.base import BLOCK_NUMBERS, Needs, Optimizer, OptimizerPlan, Slots, SlotShapes, clip_by_norm
from dlcourse.optim.rules import SGD, AdaDelta, AdaGrad, Adam, AdamW, Momentum, Nesterov, RMSprop
from dlcourse.optim.small import Adafactor, Adam8bit

__all__ = [
    "BLOCK_NUMBERS", "SGD", "AdaDelta", "AdaGrad", "Adafactor", "Adam", "Adam8bit", "AdamW", "Momentum", "Needs",
    "Nesterov", "Optimizer", "OptimizerPlan", "RMSprop", "SlotShapes", "Slots", "clip_by_norm",
]  # fmt: skip
