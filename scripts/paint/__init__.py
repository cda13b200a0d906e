"""Painters of the bundled style pictures, one per family, drawn from seeded noise."""

from collections.abc import Callable

import numpy as np

from paint.canvas import Array
from paint.glass import stained_glass
from paint.mosaic import mosaic
from paint.oil import oil
from paint.points import pointillism
from paint.wash import watercolour
from paint.woodcut import woodcut

Painter = Callable[[int, np.random.Generator], Array]

PAINTERS: dict[str, Painter] = {
    "oil": oil,
    "stained_glass": stained_glass,
    "woodcut": woodcut,
    "pointillism": pointillism,
    "mosaic": mosaic,
    "watercolour": watercolour,
}
