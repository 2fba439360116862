"""Images: many small pictures in rows, each under its caption."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dlcourse.viz.style import INK, Picture, picture, styled, title


@styled
def images(
    x: Sequence[np.ndarray] | np.ndarray,
    captions: Sequence[Any] = (),
    finding: str = "",
    circumstances: str = "",
    *,
    columns: int = 10,
    size: float = 0.72,
) -> Picture:
    """Images in rows of `columns`, each under its caption, `size` × 100 pixels wide.

    x: (N, H, W), (N, H, W, 1) or (N, H, W, 3), or a list of images. Integers are 0…255, floats 0…1, and what is beyond is
    cut off. With one channel, uint8 is ink (255 is black) and floats are light (1 is white). Raises ValueError for none.
    """
    if not len(x):
        raise ValueError("there is nothing to show: no image")
    words = [str(caption) for caption in captions] + [""] * (len(x) - len(captions))
    columns = min(columns, len(x))
    rows = -(-len(x) // columns)
    under = 0.18 * max(word.count("\n") + 1 for word in words) if any(words) else 0.0
    height = 0.15 + rows * (size + 0.05 + under) + 0.35 * bool(finding) + 0.2 * bool(circumstances)
    width = max(size * columns, 0.1 * len(finding)) + 0.2
    figure, axes = picture(rows, columns, width=width, height=height, squeeze=False)
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02)
    for place, panel in enumerate(axes.flat):
        panel.set_axis_off()
        if place < len(x):
            image = np.asarray(x[place])
            image = image[..., 0] if image.ndim == 3 and image.shape[-1] == 1 else image
            whole = image.dtype.kind in "iu"
            grey = {"cmap": "gray_r" if whole else "gray", "vmin": 0, "vmax": 255 if whole else 1}
            panel.imshow(image if whole else np.clip(image, 0, 1), **(grey if image.ndim == 2 else {}))
            panel.set_title(words[place], loc="center", size=9.5, weight="normal", pad=2, color=INK)
    if finding:
        title(figure, finding, circumstances)
    named = f": {', '.join(' '.join(word.split()) for word in words)}" if any(words) else ""
    figure.alt = f"{finding}{'. ' * bool(finding)}{len(x)} pictures{named}."
    return figure
