import torch
import math
import torch.nn as nn

torch.manual_seed(88)

# Demand for electricity by hour and temperature, whose spread depends on both.
def observe(n):
    hour = 24 * torch.rand(n)
    temp = 10 + 10 * torch.randn(n)
    mean = 3 * torch.sin(hour * math.pi / 12) + 0.004 * (temp - 18) ** 2
    std = 0.2 + 0.3 * (hour > 12).float() + 0.01 * (temp - 18).abs()
    angle = hour * math.pi / 12
    features = torch.stack([angle.sin(), angle.cos(), (temp - 10) / 10], dim=1)
    return features, mean + std * torch.randn(n), std

class Heteroscedastic(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(3, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
        self.mean = nn.Linear(48, 1)
        self.log_var = nn.Linear(48, 1)

    def forward(self, x):
        h = self.hidden(x)
        return self.mean(h)[:, 0], self.log_var(h)[:, 0]

def nll(mean, log_var, target):
    return 0.5 * (log_var + (target - mean) ** 2 / torch.exp(log_var) + math.log(2 * math.pi)).mean()

x_train, y_train, _ = observe(2000)
x_test, y_test, std_test = observe(1000)
model = Heteroscedastic()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(25):
    epoch_loss = 0
    for idx in torch.randperm(2000).split(100):
        mean, log_var = model(x_train[idx])
        loss = nll(mean, log_var, y_train[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        epoch_loss += loss.item() / 20
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} nll {epoch_loss:.3f}")

with torch.no_grad():
    mean, log_var = model(x_test)
    test = nll(mean, log_var, y_test).item()
    ideal = (std_test.log() + 0.5 + 0.5 * math.log(2 * math.pi)).mean().item()
print(f"nll of the true density {ideal:.3f}")
print(f"final test nll {test:.3f}")
