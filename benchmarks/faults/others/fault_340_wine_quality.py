# cause: relu-dead
# symptom: predictions are the same for every wine, the loss stays at the variance of the target, the first layer's gradient is exactly 0
# Wine quality from eleven lab measurements (synthetic table).
import torch
import torch.nn as nn

torch.manual_seed(12)
n, d = 1800, 11
table = torch.randn(n, d)
quality = (table[:, 0] + 0.8 * table[:, 1] * table[:, 2] - 0.6 * table[:, 3].abs()
           + 0.1 * torch.randn(n)).unsqueeze(1)
quality = (quality - quality.mean()) / quality.std()
split = 1500


def init_weights(layer):
    if isinstance(layer, nn.Linear):
        nn.init.xavier_uniform_(layer.weight)
        nn.init.constant_(layer.bias, -6.0 if layer.out_features > 1 else 0.0)  # <- fault


net = nn.Sequential(
    nn.Linear(d, 64),
    nn.ReLU(),
    nn.Linear(64, 32),
    nn.ReLU(),
    nn.Linear(32, 1),
)
net.apply(init_weights)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
mse = nn.MSELoss()

for epoch in range(20):
    perm = torch.randperm(split)
    loss_sum = 0.0
    for k in range(0, split, 50):
        rows = perm[k:k + 50]
        opt.zero_grad()
        loss = mse(net(table[rows]), quality[rows])
        loss.backward()
        opt.step()
        loss_sum += loss.item() * len(rows)
    if epoch % 2 == 1:
        g = net[0].weight.grad.abs().sum().item()
        with torch.no_grad():
            out = net(table[split:])
        print(f"epoch {epoch + 1:2d} train {loss_sum / split:.4f} test {mse(out, quality[split:]).item():.4f} "
              f"spread of predictions {out.std().item():.4f} |grad of layer 1| {g:.4f}")
