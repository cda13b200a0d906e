"""Paint the style pictures of `assets/style` from seeded noise: see assets/painters/paint.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "assets"))

from painters.paint import main

if __name__ == "__main__":
    main()
