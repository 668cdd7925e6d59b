# remedy: model.parameters() is an iterator, and the sum has used it up: params = list(model.parameters())
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 3))
params = filter(lambda p: p.requires_grad, model.parameters())  # <- fault
print(f"{sum(p.numel() for p in params)} trainable parameters")  # <- fault

optimizer = torch.optim.AdamW(params, lr=1e-3)  # <- fault
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(8, 16)).square().mean().backward()
    optimizer.step()
