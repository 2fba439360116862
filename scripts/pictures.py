"""Draw the pictures of the README again, from the same code that draws them in the notebooks."""

from pathlib import Path

from dlcourse import memory, models, optim, viz

IMAGES = Path(__file__).resolve().parent.parent / "images"

bill = memory.bill(models.cifar_cnn(), (32, 32, 3), batch_size=100, optimizer=optim.Adam())
(IMAGES / "step.png").write_bytes(viz.timeline(bill).png())
