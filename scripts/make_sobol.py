#!/usr/bin/env python
"""Write `tinytorch/kernels/sobol.bin`, the direction numbers of the first dimensions of Sobol sequences.

python scripts/make_sobol.py new-joe-kuo-6.21201

The argument is the table of S. Joe and F. Y. Kuo, https://web.maths.unsw.edu.au/~fkuo/sobol/, or SciPy's copy of it,
`scipy/stats/_sobol_direction_numbers.npz`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from tinytorch.kernels import sobol


def read(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the polynomials, one bit per coefficient, and the initial numbers, padded with zeros to 18."""
    if file.suffix == ".npz":
        with np.load(file) as table:
            return table["poly"], table["vinit"]
    polynomials, initial = [1], [[1] + [0] * 17]  # the first dimension is not in the file
    for line in file.read_text("ascii").splitlines()[1:]:
        _, degree, inner, *numbers = map(int, line.split())
        polynomials.append(1 << degree | inner << 1 | 1)
        initial.append(numbers + [0] * (18 - degree))
    return np.array(polynomials), np.array(initial)


if __name__ == "__main__":
    sobol._FILE.write_bytes(sobol.packed(*read(Path(sys.argv[1]))))
