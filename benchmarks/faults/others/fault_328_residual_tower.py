# cause: layers-in-list
# symptom: the parameter count is far too small and the loss stops high, only the ends of the network learn
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Linear(width, width)
        self.b = nn.Linear(width, width)

    def forward(self, x):
        return torch.tanh(self.b(F.relu(self.a(x))))


class Tower(nn.Module):
    def __init__(self, n_in, width, depth, n_out):
        super().__init__()
        self.stem = nn.Linear(n_in, width)
        self.blocks = [Block(width) for _ in range(depth)]  # <- fault
        self.head = nn.Linear(width, n_out)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def spirals(n, arms=3):
    label = torch.randint(0, arms, (n,))
    r = 0.1 + 0.9 * torch.rand(n)
    angle = 5.0 * r + 2 * torch.pi * label / arms + 0.1 * torch.randn(n)
    return torch.stack([r * angle.cos(), r * angle.sin()], 1) * 2, label


def main():
    torch.manual_seed(14)
    x, y = spirals(1500)
    xt, yt = spirals(500)
    model = Tower(2, 24, 3, 3)
    print("parameters:", sum(p.numel() for p in model.parameters()))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(16):
        total = 0.0
        for idx in torch.randperm(len(x)).split(50):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / 30
        if epoch % 3 == 0:
            with torch.no_grad():
                acc = (model(xt).argmax(1) == yt).float().mean().item()
            print("epoch %2d loss %.4f test acc %.3f" % (epoch, total, acc))


main()
