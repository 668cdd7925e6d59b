# cause: gradients-explode
# symptom: the first loss is 1e9 and more (test accuracy 0.354; without the fault: test accuracy 0.946)
import torch
import torch.nn as nn
import torch.nn.functional as F

# How deep may a plain net be? Points in nested shells, 12 hidden layers.
torch.manual_seed(14)


def shells(n):
    y = torch.randint(0, 3, (n,))
    direction = F.normalize(torch.randn(n, 5), dim=1)
    return (1.0 + y[:, None] + 0.25 * torch.randn(n, 1)) * direction, y


class DeepNet(nn.Module):
    def __init__(self, width=32, depth=12):
        super().__init__()
        self.first = nn.Linear(5, width)
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.last = nn.Linear(width, 3)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight)  # <- fault
                nn.init.zeros_(m.bias)

    def forward(self, x):
        x = F.relu(self.first(x))
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.last(x)


x_train, y_train = shells(1500)
x_test, y_test = shells(500)
net = DeepNet()
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for epoch in range(15):
    for idx in torch.randperm(1500).split(50):
        out = net(x_train[idx])
        loss = F.cross_entropy(out, y_train[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}, loss {loss.item():.4f}")
net.eval()
with torch.no_grad():
    acc = (net(x_test).argmax(1) == y_test).float().mean().item()
print(f"final test accuracy {acc:.3f}")
