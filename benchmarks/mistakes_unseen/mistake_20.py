# remedy: a tensor with a graph cannot be deep-copied: keep the embedding as embedding.detach().clone()
import torch
import copy
import torch.nn as nn


class PrototypeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))
        self.prototypes = {}

    def remember(self, name, examples):
        self.prototypes[name] = self.encoder(examples).mean(0)  # <- fault

    def forward(self, x):
        z = self.encoder(x)
        return -torch.stack([(z - p).pow(2).sum(-1) for p in self.prototypes.values()], dim=1)


model = PrototypeNet()
for name in ("cat", "dog", "owl"):
    model.remember(name, torch.randn(5, 6))
print(model(torch.randn(2, 6)))
best = copy.deepcopy(model)  # <- fault
