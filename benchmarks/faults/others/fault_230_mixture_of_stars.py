# cause: weights-symmetric
# symptom: the components of the mixture stay the same (test log likelihood -2.979; without the fault: test log likelihood -1.907)
import math

import torch

torch.manual_seed(71)

# Colours and brightnesses of stars in four clusters.
centers = torch.tensor([[-2.0, 1.0], [2.0, 1.5], [0.5, -2.0], [-1.5, -1.5]])
which = torch.randint(4, (800,))
stars = centers[which] + 0.3 * torch.randn(800, 2)
train, test = stars[:600], stars[600:]


class Mixture:
    def __init__(self, data, k):
        self.mu = data.mean(0, keepdim=True).repeat(k, 1)  # <- fault
        self.log_sigma = torch.zeros(k, 2)
        self.weight = torch.zeros(k)
        for p in self.parameters():
            p.requires_grad_()

    def parameters(self):
        return [self.mu, self.log_sigma, self.weight]

    def log_prob(self, x):
        z = (x[:, None] - self.mu) / self.log_sigma.exp()
        each = (-0.5 * z**2 - self.log_sigma - 0.5 * math.log(2 * math.pi)).sum(-1)
        return torch.logsumexp(each + torch.log_softmax(self.weight, 0), dim=1)


mixture = Mixture(train, k=6)
optimizer = torch.optim.Adam(mixture.parameters(), lr=0.03)
for it in range(500):
    nll = -mixture.log_prob(train).mean()
    optimizer.zero_grad()
    nll.backward()
    optimizer.step()
    if it % 100 == 0:
        print("iteration", it, "nll", round(nll.item(), 4))

print("means", [[round(v, 2) for v in m] for m in mixture.mu.tolist()])
with torch.no_grad():
    print(f"final test log likelihood {mixture.log_prob(test).mean().item():.3f}")
