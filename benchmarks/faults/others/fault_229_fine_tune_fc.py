# cause: frozen-by-mistake
# symptom: the loss of the second task stays at that of guessing from first step to last (accuracy 0.467; without the fault: accuracy 0.973)
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(20)


def strokes(n, task):
    """Bright strokes on 12x12 pictures: task 'count' asks how many, task 'side' where most are."""
    x = 0.2 * torch.randn(n, 1, 12, 12)
    count = torch.randint(1, 4, (n,))
    side = torch.randint(0, 2, (n,))
    for i in range(n):
        for _ in range(int(count[i])):
            r, c = torch.randint(0, 9, (1,)).item(), torch.randint(0, 6, (1,)).item()
            x[i, 0, r : r + 4, c + 6 * int(side[i])] += 1.2
    return x, (count - 1 if task == "count" else side)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 9, 32)
        self.classifier = nn.Linear(32, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc(x.flatten(1)))
        return self.classifier(x)


def fit(net, x, y, epochs, lr):
    optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=lr)
    for epoch in range(epochs):
        for b in torch.randperm(len(x)).split(40):
            loss = F.cross_entropy(net(x[b]), y[b])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"  epoch {epoch} loss {loss.item():.3f}")


net = Net()
fit(net, *strokes(800, "count"), epochs=4, lr=3e-3)

# The second task gets a new head that starts at zero; the convolutions are kept.
net.classifier = nn.Linear(32, 2)
nn.init.zeros_(net.classifier.weight)
for name, p in net.named_parameters():
    p.requires_grad = name.startswith("fc")  # <- fault
fit(net, *strokes(800, "side"), epochs=4, lr=3e-3)

x, y = strokes(300, "side")
with torch.no_grad():
    print(f"final accuracy {(net(x).argmax(1) == y).float().mean().item():.3f}")
