# cause: inputs-unscaled
# symptom: rain is forecast no better than by always saying no (accuracy 0.536; without the fault: accuracy 0.968)
import torch
import torch.nn as nn

torch.manual_seed(58)


# Six hours of pressure (pascal), humidity (share) and temperature (kelvin); will it rain?
def weather(n, hours=6):
    fall = torch.randn(n, 1) * 60
    pressure = 101325 + torch.randn(n, 1) * 300 - fall * torch.arange(hours) + 20 * torch.randn(n, hours)
    humidity = (0.6 + 0.15 * torch.randn(n, hours)).clamp(0, 1)
    temperature = 285 + 6 * torch.randn(n, 1) + torch.randn(n, hours)
    wet = fall.squeeze(1) / 60 + 3 * (humidity.mean(1) - 0.6) / 0.06 * 0.3
    return torch.stack([pressure, humidity, temperature], dim=2), (wet > 0.2).float()


class RainLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, x):
        states, _ = self.lstm(x)  # <- fault
        return self.head(states[:, -1]).squeeze(1)


x_train, y_train = weather(2000)  # <- fault
x_test, y_test = weather(500)
model = RainLSTM()
bce = nn.BCEWithLogitsLoss()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(12):
    epoch_loss = 0.0
    for idx in torch.randperm(2000).split(50):
        loss = bce(model(x_train[idx]), y_train[idx])  # <- fault
        opt.zero_grad()
        loss.backward()
        opt.step()
        epoch_loss += loss.item()
    print(f"epoch {epoch:2d}: {epoch_loss / 40:.4f}")

with torch.no_grad():
    rain = model(x_test) > 0
print(f"share of rain {y_test.mean().item():.3f}")
print(f"final accuracy {(rain == (y_test > 0.5)).float().mean().item():.3f}")
