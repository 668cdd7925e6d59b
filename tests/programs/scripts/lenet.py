import torch
from torch import nn

net = nn.Sequential(
    nn.Conv2d(1, 6, kernel_size=5, padding=2), nn.Sigmoid(),
    nn.AvgPool2d(kernel_size=2, stride=2),
    nn.Conv2d(6, 16, kernel_size=5), nn.Sigmoid(),
    nn.AvgPool2d(kernel_size=2, stride=2),
    nn.Flatten(),
    nn.Linear(16 * 5 * 5, 120), nn.Sigmoid(),
    nn.Linear(120, 84), nn.Sigmoid(),
    nn.Linear(84, 10),
)  # fmt: skip
X = torch.rand(size=(1, 1, 28, 28), dtype=torch.float32)
for layer in net:
    X = layer(X)
    print(layer.__class__.__name__, "output shape: \t", X.shape)


def init_weights(m):
    if isinstance(m, (nn.Linear, nn.Conv2d)):
        nn.init.xavier_uniform_(m.weight)


net.apply(init_weights)
labels = torch.arange(40) % 10
images = torch.randn(10, 1, 28, 28)[labels] + 0.3 * torch.randn(40, 1, 28, 28)
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
loss_fn = nn.CrossEntropyLoss()
for step in range(6):
    optimizer.zero_grad()
    loss = loss_fn(net(images), labels)
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
print(net)
print(sum(p.numel() for p in net.parameters()))


def conv_block(c_in, c_out):
    return nn.Sequential(
        nn.BatchNorm2d(c_in), nn.ReLU(), nn.Conv2d(c_in, c_out, kernel_size=3, padding=1)
    )


class DenseBlock(nn.Module):
    def __init__(self, num_convs, c_in, growth):
        super().__init__()
        self.net = nn.Sequential(*[conv_block(growth * i + c_in, growth) for i in range(num_convs)])

    def forward(self, X):
        for blk in self.net:
            X = torch.cat((X, blk(X)), dim=1)
        return X


blk = DenseBlock(2, 3, 10)
Y = blk(torch.randn(4, 3, 8, 8))
print(Y.shape, Y.mean().item(), Y.std().item())
