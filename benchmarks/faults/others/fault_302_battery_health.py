# cause: batch-norm-batch-of-one
# symptom: ValueError "Expected more than 1 value per channel when training" in the last batch of the first epoch
# State of health of battery cells from charge curve features.
import torch
import torch.nn as nn
import torch.utils.data as data

torch.manual_seed(5)

CELLS = 961
curves = torch.randn(CELLS, 12)
w = torch.randn(12) / 12 ** 0.5
health = torch.sigmoid(curves @ w + 0.5 * curves[:, 0] * curves[:, 1])
health = (health + 0.02 * torch.randn(CELLS)).unsqueeze(1)
held_x, held_y = curves[:160], health[:160]
fit_x, fit_y = curves[160:], health[160:]


class Block(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.lin = nn.Linear(n_in, n_out)
        self.bn = nn.BatchNorm1d(n_out)

    def forward(self, x):
        return torch.relu(self.bn(self.lin(x)))  # <- fault


class HealthNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(12, 64), Block(64, 64)])
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.out(x)


loader = data.DataLoader(data.TensorDataset(fit_x, fit_y), batch_size=32, shuffle=True)  # <- fault
net = HealthNet()
optim = torch.optim.Adam(net.parameters(), lr=5e-3)

for epoch in range(1, 26):
    net.train()
    epoch_loss = 0.0
    for xb, yb in loader:
        optim.zero_grad()
        loss = nn.functional.mse_loss(net(xb), yb)
        loss.backward()
        optim.step()
        epoch_loss += loss.item()
    net.eval()
    with torch.no_grad():
        mae = (net(held_x) - held_y).abs().mean().item()
    if epoch % 3 == 1:
        print(f"epoch {epoch:2d} | train mse {epoch_loss / len(loader):.5f} | held-out mae {mae:.4f}")
