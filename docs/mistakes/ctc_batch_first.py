"""ctc loss lengths.

Module: CTCLoss
"""

import torch
from torch import nn

logp = torch.randn(4, 20, 6).log_softmax(-1)
targets = torch.randint(1, 6, (4, 5))
loss = nn.CTCLoss()(logp, targets, torch.full((4,), 20), torch.full((4,), 5))
#! loss = nn.CTCLoss()(logp.transpose(0, 1), targets, torch.full((4,), 20), torch.full((4,), 5))
