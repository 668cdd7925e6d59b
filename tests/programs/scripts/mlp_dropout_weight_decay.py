import torch
from torch import nn
from torch.nn import functional as F


def dropout_layer(X, dropout):
    assert 0 <= dropout <= 1
    if dropout == 1:
        return torch.zeros_like(X)
    if dropout == 0:
        return X
    mask = (torch.rand(X.shape) > dropout).float()
    return mask * X / (1.0 - dropout)


X = torch.arange(16, dtype=torch.float32).reshape((2, 8))
print(dropout_layer(X, 0.0))
print(dropout_layer(X, 0.5))
print(dropout_layer(X, 1.0))


class MLP(nn.Module):
    def __init__(self, sizes, dropout=0.2):
        super().__init__()
        layers = []
        for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
            layers.append(nn.Linear(a, b))
            if i < len(sizes) - 2:
                layers += [nn.ReLU(), nn.Dropout(dropout)]
        self.net = nn.Sequential(nn.Flatten(), *layers)

    def forward(self, x):
        return self.net(x)


def init_weights(m):
    if type(m) == nn.Linear:  # noqa: E721
        nn.init.normal_(m.weight, std=0.01)


net = MLP([20, 64, 32, 5])
net.apply(init_weights)
print(net)
X = torch.randn(200, 4, 5)
y = (X.flatten(1) @ torch.randn(20, 5)).argmax(dim=1)
decay = [p for n, p in net.named_parameters() if n.endswith("weight")]
no_decay = [p for n, p in net.named_parameters() if n.endswith("bias")]
opt = torch.optim.SGD(
    [{"params": decay, "weight_decay": 1e-3}, {"params": no_decay}], lr=0.5, momentum=0.9
)
for epoch in range(10):
    net.train()
    for i in range(0, 200, 50):
        opt.zero_grad()
        loss = F.cross_entropy(net(X[i : i + 50]), y[i : i + 50])
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        acc = (net(X).argmax(-1) == y).float().mean()
    print(f"{epoch} {loss.item():.4f} {acc:.3f}")
print(opt.param_groups[0]["weight_decay"], opt.param_groups[1]["weight_decay"], opt.defaults["momentum"])
print({n: tuple(p.shape) for n, p in net.named_parameters()}, net.training)
