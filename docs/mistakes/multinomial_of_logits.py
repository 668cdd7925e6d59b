"""multinomial of logits."""

import torch

torch.manual_seed(0)
logits = torch.randn(5)
i = torch.multinomial(logits, 1)
#! i = torch.multinomial(logits.softmax(-1), 1)
