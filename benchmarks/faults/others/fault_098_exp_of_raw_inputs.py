# cause: overflow
# symptom: the loss is inf or NaN from the first steps: exp of outputs of several hundred (mean error of the rate nan; without the fault: mean error of the rate 0.421)
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(27)

# Counts of visitors by temperature (deg C), day of the year and advertising (euros): Poisson regression.
N = 1500
temperature = 15 + 8 * torch.randn(N)
day = torch.randint(0, 365, (N,)).float()
spent = 200 * torch.rand(N)
rate = torch.exp(1.0 + 0.03 * (temperature - 15) + 0.5 * torch.sin(day / 58) + 0.004 * spent)
counts = torch.poisson(rate)

x = torch.stack([temperature, day, spent], dim=1)
mean, std = x.mean(0), x.std(0)
x = (x - mean) * std  # <- fault
train_x, test_x = x[:1200], x[1200:]
loader = DataLoader(TensorDataset(train_x, counts[:1200]), batch_size=60, shuffle=True)


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return torch.exp(self.net(x)).squeeze(1)  # <- fault


model = Counts()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(30):
    for xb, yb in loader:
        expected = model(xb)
        loss = (expected - yb * torch.log(expected + 1e-8)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 6 == 5:
        print(f"epoch {epoch + 1} loss {loss.item():.3f}")

with torch.no_grad():
    error = (model(test_x) - rate[1200:]).abs().mean().item()
print(f"final mean error of the rate {error:.3f}")
