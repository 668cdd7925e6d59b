"""Lists of predictions are joined like tensors."""

import torch

preds = [[0, 1, 1], [1, 0, 0]]
joined = torch.cat(preds)
#! joined = torch.cat([torch.tensor(each) for each in preds])
