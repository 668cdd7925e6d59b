"""`ReduceLROnPlateau` needs the loss."""

import torch

optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
loss = torch.tensor(1.0)
optimizer.step()
scheduler.step()
#! scheduler.step(loss)
