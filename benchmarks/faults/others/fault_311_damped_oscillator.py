# cause: zero_grad-missing
# symptom: the loss swings ever more widely and then overflows to nan
import math

import torch
import torch.nn as nn

torch.manual_seed(3)

# displacement of a damped oscillator: x(t) = A exp(-g t) cos(w t + phi)
n = 1024
amp = 0.5 + torch.rand(n)
gamma = 0.1 + 0.4 * torch.rand(n)
omega = 1.0 + torch.rand(n)
t = 4.0 * torch.rand(n)
x_true = amp * torch.exp(-gamma * t) * torch.cos(omega * t)
feats = torch.stack([amp - 1.0, (gamma - 0.3) / 0.12, (omega - 1.5) / 0.3, (t - 2.0) / 1.15], dim=1)
target = x_true.unsqueeze(1)

net = nn.Sequential(
    nn.Linear(4, 48),
    nn.Tanh(),
    nn.Linear(48, 48),
    nn.Tanh(),
    nn.Linear(48, 1),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
criterion = nn.MSELoss()

batch = 64
for epoch in range(40):
    order = torch.randperm(n)
    running = 0.0
    for i in range(0, n, batch):
        idx = order[i:i + batch]
        pred = net(feats[idx])
        loss = criterion(pred, target[idx])
        loss.backward()  # <- fault
        optimizer.step()  # <- fault
        running += loss.item()
    if epoch % 4 == 0 or epoch == 39:
        print(f"epoch {epoch:3d}  mse {running / (n // batch):.5f}")

with torch.no_grad():
    rms = math.sqrt(criterion(net(feats), target).item())
print(f"final rms error {rms:.4f}  (spread of the data {target.std().item():.4f})")
