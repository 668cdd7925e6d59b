# cause: layers-in-list
"""A trainer class with a schedule, the best state, and early stopping."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(3)
x = torch.randn(900, 12)
y = ((x[:, :4] ** 2).sum(1) > 3.4).long() + 2 * (x[:, 5] > 0).long()


class MLP(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = [nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:])]  # <- fault
        self.norm = nn.BatchNorm1d(sizes[1])

    def forward(self, x):
        x = torch.relu(self.norm(self.layers[0](x)))
        for layer in self.layers[1:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


class Trainer:
    def __init__(self, model, data, lr=0.01):
        train, valid = random_split(data, [700, 200])
        self.train_loader = DataLoader(train, batch_size=50, shuffle=True)
        self.valid_loader = DataLoader(valid, batch_size=200)
        self.model = model
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=4, gamma=0.5)
        self.best, self.best_state = 0.0, None
        self.history = []

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for xb, yb in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(xb), yb)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        self.scheduler.step()
        self.history.append(total / len(self.train_loader))

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        right = 0
        for xb, yb in self.valid_loader:
            right += (self.model(xb).argmax(dim=1) == yb).sum().item()
        return right / 200

    def fit(self, epochs):
        for epoch in range(epochs):
            self.train_epoch()
            accuracy = self.validate()
            if accuracy > self.best:
                self.best = accuracy
                self.best_state = copy.deepcopy(self.model.state_dict())
            print(epoch, self.history[-1], accuracy)
        self.model.load_state_dict(self.best_state)


trainer = Trainer(MLP([12, 64, 64, 4]), TensorDataset(x, y))
trainer.fit(10)
print("best", trainer.best, "again", trainer.validate())
