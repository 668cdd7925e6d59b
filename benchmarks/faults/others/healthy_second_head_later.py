"""Two heads on one trunk; the second joins the optimizer half way."""
import torch
import torch.nn as nn

torch.manual_seed(95)


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(5, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU())
        self.size = nn.Linear(48, 1)
        self.kind = nn.Linear(48, 3)

    def forward(self, x):
        h = self.trunk(x)
        return self.size(h).squeeze(1), self.kind(h)


def fish(n):
    """Five measures of a fish: how heavy is it, and which of three kinds?"""
    x = torch.randn(n, 5)
    weight = torch.sin(x[:, 0]) + x[:, 1] * x[:, 2]
    scores = torch.stack([x[:, 0] + x[:, 3], x[:, 1] - x[:, 4], -x[:, 2]], dim=1)
    return x, weight, scores.argmax(1)


model = TwoHeads()
optimizer = torch.optim.Adam(
    [{"params": model.trunk.parameters()}, {"params": model.size.parameters()}], lr=4e-3
)
x, weight, kind = fish(1500)

for epoch in range(30):
    both = epoch >= 15
    if epoch == 15:
        optimizer.add_param_group({"params": model.kind.parameters(), "lr": 8e-3})
    for rows in torch.randperm(1500).split(60):
        size_out, kind_out = model(x[rows])
        loss = nn.functional.mse_loss(size_out, weight[rows])
        if both:
            loss = loss + nn.functional.cross_entropy(kind_out, kind[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} loss {loss.item():.4f} {'both heads' if both else 'first head'}")

x, weight, kind = fish(600)
with torch.no_grad():
    size_out, kind_out = model(x)
print(f"weight r2 {1 - ((size_out - weight).pow(2).mean() / weight.var()).item():.3f}")
print(f"final kind accuracy {(kind_out.argmax(1) == kind).float().mean().item():.3f}")
