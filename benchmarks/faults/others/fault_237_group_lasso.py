# cause: sqrt-at-zero
# symptom: all weights are nan after the first step (test mse nan; without the fault: test mse 0.053)
import torch
from torch import nn

torch.manual_seed(83)

# Choose sensors: only 3 of 20 matter; a group penalty on their columns drops the rest.
readings = torch.randn(900, 20)
clean = 2 * readings[:, 2] - 1.5 * readings[:, 7] + torch.sin(2 * readings[:, 11])
output = (clean + 0.1 * torch.randn(900)).unsqueeze(1)


class Selector(nn.Module):
    """A linear skip path that starts at zero next to a small network."""

    def __init__(self, n_in, hidden=24):
        super().__init__()
        self.skip = nn.Linear(n_in, 1)
        nn.init.zeros_(self.skip.weight)
        self.fc1, self.fc2 = nn.Linear(n_in, hidden), nn.Linear(hidden, 1)

    def forward(self, x):
        return self.skip(x) + self.fc2(torch.tanh(self.fc1(x)))

    def penalty(self):
        skip = self.skip.weight.pow(2).sum(dim=0).sqrt()  # <- fault
        body = self.fc1.weight.pow(2).sum(dim=0).sqrt()
        return (skip + body).sum()


def run(steps=500, strength=0.01):
    model = Selector(20)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(steps):
        batch = torch.randint(0, 700, (64,))
        mse = (model(readings[batch]) - output[batch]).pow(2).mean()
        loss = mse + strength * model.penalty()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(f"step {step} mse {mse.item():.4f}")
    return model


model = run()
with torch.no_grad():
    error = model(readings[700:]) - output[700:]
    print("largest columns", model.fc1.weight.norm(dim=0).topk(3).indices.tolist())
print(f"final test mse {error.pow(2).mean().item():.3f}")
