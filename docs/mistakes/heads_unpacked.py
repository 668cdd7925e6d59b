"""q, k, v heads are split in the wrong order."""

import torch

qkv = torch.rand(2, 10, 96)
q, k, v = qkv.reshape(2, 10, 3, 4, 8)
#! q, k, v = qkv.reshape(2, 10, 3, 4, 8).unbind(2)
