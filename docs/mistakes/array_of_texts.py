"""An array of texts."""

import numpy as np
import torch

labels = np.array(["cat", "dog", "cat"])
y = torch.from_numpy(labels)
#! y = torch.from_numpy(np.unique(labels, return_inverse=True)[1])
