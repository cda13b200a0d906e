"""Painters of the bundled style pictures, one per family, drawn from seeded noise."""

from collections.abc import Callable

import numpy as np

from painters.canvas import Array
from painters.glass import stained_glass
from painters.mosaic import mosaic
from painters.oil import oil
from painters.points import pointillism
from painters.wash import watercolour
from painters.woodcut import woodcut

Painter = Callable[[int, np.random.Generator], Array]

PAINTERS: dict[str, Painter] = {
    "oil": oil,
    "stained_glass": stained_glass,
    "woodcut": woodcut,
    "pointillism": pointillism,
    "mosaic": mosaic,
    "watercolour": watercolour,
}
