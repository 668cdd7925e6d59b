"""The name of a device is misspelt."""

import torch

device = torch.device("gpu")
#! device = torch.device("cpu")
