# cause: broadcast-in-loss
# symptom: the mean is predicted for all (R2 0.112; without the fault: R2 0.978)
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(42)

# Something like the house price tables: columns with very different units.
N = 2000
area = 40 + 120 * torch.rand(N)
rooms = torch.randint(1, 7, (N,)).float()
year = 1950 + 70 * torch.rand(N)
distance = 15_000 * torch.rand(N)
floor = torch.randint(0, 12, (N,)).float()
noise = torch.randn(N)
price = 2.1 * area + 9 * rooms + 0.6 * (year - 1950) - 0.008 * distance + 25 * torch.sin(floor) + 6 * noise

features = torch.stack([area, rooms, year, distance, floor], dim=1)
features = (features - features.mean(0)) / features.std(0)
price = (price - price.mean()) / price.std()

dataset = TensorDataset(features, price)
train_set, val_set = random_split(dataset, [1600, 400])
train_dl = DataLoader(train_set, batch_size=64, shuffle=True)
val_dl = DataLoader(val_set, batch_size=200)


class PriceModel(nn.Module):
    def __init__(self, n_in, hidden=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_in, hidden), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(hidden, hidden), nn.ReLU(),
        )
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.body(x))  # <- fault


net = PriceModel(5)
loss_fn = nn.MSELoss()
opt = optim.Adam(net.parameters(), lr=2e-3)
sched = optim.lr_scheduler.StepLR(opt, step_size=15, gamma=0.3)

for epoch in range(40):
    net.train()
    for xb, yb in train_dl:
        pred = net(xb)
        loss = loss_fn(pred, yb)  # <- fault
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()

    net.eval()
    with torch.no_grad():
        sq = sum(((net(xb).view(-1) - yb) ** 2).sum().item() for xb, yb in val_dl)
    mse = sq / len(val_set)
    if epoch % 5 == 4:
        print(f"{epoch + 1:>3} val mse {mse:.4f} lr {sched.get_last_lr()[0]:.1e}")

print(f"final R2 {1 - mse:.3f}")
