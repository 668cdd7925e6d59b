"""The loss of a sequence gets all predictions, but not flattened."""

import torch
import torch.nn.functional as F

log_probs = torch.zeros(2, 7, 50)
tokens = torch.zeros(2, 7, dtype=torch.long)
F.nll_loss(log_probs, tokens)
#! F.nll_loss(log_probs.transpose(1, 2), tokens)
