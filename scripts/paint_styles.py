"""Paint the style pictures of `assets/style` from seeded noise: see tools/painters/paint.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.painters.paint import main

if __name__ == "__main__":
    main()
