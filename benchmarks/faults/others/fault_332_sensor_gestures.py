# cause: labels-mismatched
# symptom: accuracy stays at chance (0.2) on new recordings; the loss stays near ln 5 = 1.609
import torch
import torch.nn as nn
import torch.nn.functional as F


def record(n, length=40, kinds=5):
    t = torch.linspace(0, 1, length)
    y = torch.arange(n) % kinds
    freq = 2.0 + 1.5 * y.float().unsqueeze(1)
    phase = 6.28 * torch.rand(n, 1)
    a = torch.sin(6.28 * freq * t + phase)
    b = torch.cos(6.28 * freq * t + phase) * (1 + 0.3 * torch.randn(n, 1))
    x = torch.stack([a, b], dim=1) + 0.3 * torch.randn(n, 2, length)
    return x, y


def shuffled(x, y):
    x = x[torch.randperm(x.size(0))]  # <- fault
    y = y[torch.randperm(y.size(0))]  # <- fault
    return x, y


class Conv1dNet(nn.Module):
    def __init__(self, kinds=5):
        super(Conv1dNet, self).__init__()
        self.c1 = nn.Conv1d(2, 12, 5, padding=2)
        self.c2 = nn.Conv1d(12, 24, 5, padding=2)
        self.fc = nn.Linear(24, kinds)

    def forward(self, x):
        x = F.relu(self.c1(x))
        x = F.max_pool1d(x, 2)
        x = F.relu(self.c2(x))
        return self.fc(x.mean(dim=2))


def run(seed=17, epochs=10, bs=40):
    torch.manual_seed(seed)
    x, y = record(1200)
    x, y = shuffled(x, y)  # <- fault
    new_x, new_y = record(250)
    net = Conv1dNet()
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    for e in range(epochs):
        tot = 0.0
        for i in range(0, len(x), bs):
            loss = F.cross_entropy(net(x[i:i + bs]), y[i:i + bs])
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item() * bs
        with torch.no_grad():
            acc = (net(new_x).argmax(1) == new_y).float().mean().item()
        print(f"epoch {e} loss {tot / len(x):.4f} new recordings {acc:.3f}")


if __name__ == "__main__":
    run()
