# cause: overflow
# symptom: the loss becomes nan once the predictions pass 88 minutes (mean error nan minutes; without the fault: mean error 2.06 minutes)
import torch
import torch.nn as nn

torch.manual_seed(62)

# Minutes of a journey by distance, traffic and number of changes: always positive.
n = 1500
trip = torch.rand(n, 3)
minutes = 10 + 130 * trip[:, 0] * (0.6 + 0.8 * trip[:, 1]) + 15 * trip[:, 2] + 2 * torch.randn(n)


def softplus(z):
    return torch.log(1 + torch.exp(z))  # <- fault


class Journey(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 1)

    def forward(self, x):
        return softplus(self.head(self.body(x)).squeeze(1))


model = Journey()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(25):
    errors = []
    for rows in torch.randperm(1200).split(50):
        guess = model(trip[rows])
        loss = (guess - minutes[rows]).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        errors.append(loss.item())
    if epoch % 4 == 0:
        print(f"epoch {epoch}: mean error {sum(errors) / len(errors):.2f} min, longest {guess.max().item():.1f}")

with torch.no_grad():
    error = (model(trip[1200:]) - minutes[1200:]).abs().mean().item()
print(f"final mean error {error:.2f} minutes")
