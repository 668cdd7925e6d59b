"""Gradients accumulated over four batches, clipped, with warm-up of the learning rate for each step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(800, 10)
y = (x[:, :3].sum(1) > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
model = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: min(1.0, (k + 1) / 10))
accumulate = 4
for epoch in range(6):
    model.train()
    for k, (a, b) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(a), b) / accumulate
        loss.backward()
        if (k + 1) % accumulate == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            warmup.step()
            optimizer.zero_grad()
    model.eval()
    with torch.inference_mode():
        print(epoch, (model(x).argmax(1) == y).float().mean().item())
