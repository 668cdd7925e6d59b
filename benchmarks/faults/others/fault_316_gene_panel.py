# cause: train-missing
# symptom: from the second epoch dropout is off and the batch-norm averages stand still; train loss goes to 0, held-out loss climbs
import torch
import torch.nn as nn


class Panel(nn.Module):
    def __init__(self, genes):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(genes, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.7),
            nn.Linear(128, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.7),
        )
        self.head = nn.Linear(128, 2)

    def forward(self, x):
        return self.head(self.body(x))


class Experiment:
    def __init__(self, seed=2):
        torch.manual_seed(seed)
        w = torch.zeros(60)
        w[:8] = 1.0
        x = torch.randn(900, 60)
        y = (x @ w + 1.0 * torch.randn(900) > 0).long()
        self.train_x, self.train_y = x[:250], y[:250]
        self.val_x, self.val_y = x[250:], y[250:]
        self.model = Panel(60)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=2e-3)
        self.ce = nn.CrossEntropyLoss()

    def validate(self):
        self.model.eval()  # <- fault
        with torch.no_grad():
            out = self.model(self.val_x)
            acc = (out.argmax(1) == self.val_y).float().mean().item()
            return self.ce(out, self.val_y).item(), acc

    def one_epoch(self):  # <- fault
        total = 0.0
        for idx in torch.randperm(250).split(25):
            self.opt.zero_grad()
            loss = self.ce(self.model(self.train_x[idx]), self.train_y[idx])  # <- fault
            loss.backward()
            self.opt.step()
            total += loss.item() / 10
        return total

    def run(self, epochs=40):
        self.model.train()
        for e in range(epochs):  # <- fault
            tr = self.one_epoch()
            vl, va = self.validate()
            if e % 5 == 0 or e == epochs - 1:
                print(f"{e:2d} train {tr:.4f} val {vl:.4f} val acc {va:.3f} training={self.model.training}")


Experiment().run()
