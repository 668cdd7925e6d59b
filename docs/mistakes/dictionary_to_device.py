"""A dictionary of tensors is moved."""

import torch

batch = {"x": torch.rand(2), "y": torch.rand(2)}
batch = batch.to("cpu")
#! batch = {key: value.to("cpu") for key, value in batch.items()}
