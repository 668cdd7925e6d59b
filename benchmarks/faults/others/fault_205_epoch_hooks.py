# cause: scheduler-before-optimizer
# symptom: training begins with a tenth of the rate and stays behind (test accuracy 0.854; without the fault: test accuracy 0.996)
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import StepLR


class Loop:
    """A loop with hooks, as in the big frameworks."""

    def __init__(self, model, data, batch=32):
        self.model, self.data, self.batch = model, data, batch
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        self.scheduler = StepLR(self.optimizer, step_size=1, gamma=0.1)

    def on_epoch_start(self):
        self.model.train()
        self.scheduler.step()  # <- fault
        self.total = 0.0

    def on_batch(self, x, y):
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.total += loss.item() * len(x)

    def on_epoch_end(self, epoch):
        print(f"epoch {epoch} loss {self.total / len(self.data[0]):.4f}")

    def run(self, epochs):
        x, y = self.data
        for epoch in range(epochs):
            self.on_epoch_start()  # <- fault
            order = torch.randperm(len(x))
            for k in range(0, len(x), self.batch):
                rows = order[k : k + self.batch]
                self.on_batch(x[rows], y[rows])
            self.on_epoch_end(epoch)


def spirals(n):
    arm = torch.randint(0, 3, (n,))
    r = torch.rand(n).sqrt()
    a = 4 * r + 2.0944 * arm + 0.12 * torch.randn(n)
    return torch.stack([r * a.cos(), r * a.sin()], 1), arm


torch.manual_seed(8)
net = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
Loop(net, spirals(8000)).run(4)
x, y = spirals(1000)
net.eval()
with torch.no_grad():
    print(f"final test accuracy {(net(x).argmax(1) == y).float().mean().item():.3f}")
