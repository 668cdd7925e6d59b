"""A list of tensors is moved."""

import torch

batch = [torch.rand(2), torch.rand(2)]
batch = batch.to("cpu")
#! batch = [each.to("cpu") for each in batch]
