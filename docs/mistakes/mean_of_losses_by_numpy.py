"""A list of losses is summed with numpy."""

import numpy as np
import torch

w = torch.rand(3, requires_grad=True)
losses = [w.sum(), (w ** 2).sum()]
loss = np.mean(losses)
#! loss = torch.stack(losses).mean()
loss.backward()
