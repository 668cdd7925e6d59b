"""An array of objects."""

import numpy as np
import torch

rows = np.array([[1, 2.5], [3, 4.5]], dtype=object)
x = torch.from_numpy(rows)
#! x = torch.from_numpy(rows.astype("float32"))
