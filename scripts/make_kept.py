"""Ask PyTorch for the values and gradients of new samples, and keep them in tests/faces/kept.

python scripts/make_kept.py
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.faces import kept

if __name__ == "__main__":
    kept.write()
