# cause: eval-missing
# symptom: two predictions for the same mixture differ, and the test error is large (test r2 0.896; without the fault: test r2 0.982)
import torch
from torch import nn, optim

torch.manual_seed(31)

# Strength of concrete from its mixture (cement, slag, water, age, ...), made up.
mix = torch.rand(1500, 6)
strength = (
    3 * mix[:, 0] - 2.5 * mix[:, 2] + 1.5 * torch.log(0.1 + mix[:, 3]) + mix[:, 0] * mix[:, 1] + 4
)
mean, std = strength.mean(), strength.std()
target = (strength - mean) / std


class Strength(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(6, 120)
        self.drop = nn.Dropout(0.5)
        self.second = nn.Linear(120, 40)
        self.out = nn.Linear(40, 1)

    def forward(self, x):
        x = self.drop(torch.relu(self.hidden(x)))
        x = self.drop(torch.relu(self.second(x)))
        return self.out(x).squeeze(-1)


def train(model, x, y, epochs=40):
    optimizer = optim.Adam(model.parameters(), lr=4e-3)
    model.train()
    for epoch in range(epochs):
        for rows in torch.randperm(len(x)).split(60):
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1} last loss {loss.item():.4f}")


def predict(model, x):
    with torch.no_grad():  # <- fault
        return model(x) * std + mean  # <- fault


model = Strength()
train(model, mix[:1200], target[:1200])
guess = predict(model, mix[1200:])  # <- fault
again = predict(model, mix[1200:])  # <- fault
print(f"first mixture: {guess[0].item():.2f} and once more {again[0].item():.2f}")
ss = (guess - strength[1200:]).pow(2).sum() / (strength[1200:] - mean).pow(2).sum()
print(f"final test r2 {1 - ss.item():.3f}")
