# remedy: the method must be named forward: def forward(self, x) in class Expert (it is spelled foward)
import torch
import torch.nn as nn


class Expert(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 4 * dim), nn.ReLU(), nn.Linear(4 * dim, dim))

    def foward(self, x):  # <- fault
        return self.net(x)


class MixtureOfExperts(nn.Module):
    def __init__(self, dim=16, n=3):
        super().__init__()
        self.experts = nn.ModuleList(Expert(dim) for _ in range(n))
        self.router = nn.Linear(dim, n)

    def forward(self, x):
        weights = self.router(x).softmax(-1)
        outputs = torch.stack([expert(x) for expert in self.experts], dim=-1)  # <- fault
        return (outputs * weights.unsqueeze(-2)).sum(-1)


print(nn.Sequential(nn.Linear(4, 16), MixtureOfExperts())(torch.randn(5, 4)))
