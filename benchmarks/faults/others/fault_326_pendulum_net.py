# cause: learning-rate-too-low
# symptom: the loss falls by less than a percent over the whole run; gradients are there but the weights hardly move
import torch
import torch.nn as nn
from torch.utils.data import TensorDataset, DataLoader


def pendulum_step(theta, omega, dt=0.1, drag=0.2, substeps=10):
    for _ in range(substeps):
        omega = omega + dt / substeps * (-9.81 * torch.sin(theta) - drag * omega)
        theta = theta + dt / substeps * omega
    return theta, omega


def transitions(n):
    theta = (torch.rand(n) * 2 - 1) * 3.0
    omega = torch.randn(n)
    t2, w2 = pendulum_step(theta, omega)
    x = torch.stack([theta.sin(), theta.cos(), omega], 1)
    y = torch.stack([t2 - theta, w2 - omega], 1)
    return x, y


class Trainer(object):
    """Fits a one-step model of the swinging pendulum."""

    def __init__(self, net, options):
        self.net = net
        self.options = options
        self.opt = torch.optim.SGD(net.parameters(), lr=options["lr"], momentum=options["momentum"])  # <- fault
        self.loss = nn.MSELoss()

    def epoch(self, loader):
        self.net.train()
        s = 0.0
        for x, y in loader:
            self.opt.zero_grad()
            err = self.loss(self.net(x), y)
            err.backward()
            self.opt.step()
            s += err.item()
        return s / len(loader)

    def test(self, x, y):
        self.net.eval()
        with torch.no_grad():
            return self.loss(self.net(x), y).item()


if __name__ == "__main__":
    torch.manual_seed(77)
    OPTIONS = {
        "lr": 1e-7,  # <- fault
        "momentum": 0.9,
        "epochs": 12,
        "batch_size": 40,
    }
    x, y = transitions(2400)
    scale = y.std(0)
    train = DataLoader(TensorDataset(x[:2000], y[:2000] / scale), OPTIONS["batch_size"], shuffle=True)
    net = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    trainer = Trainer(net, OPTIONS)
    for e in range(OPTIONS["epochs"]):
        tr = trainer.epoch(train)
        te = trainer.test(x[2000:], y[2000:] / scale)
        print("epoch {:2d}: train {:.5f} test {:.5f}".format(e + 1, tr, te))
