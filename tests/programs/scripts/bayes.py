import torch
import torch.distributions as dist
import torch.nn as nn
from torch.distributions import Bernoulli, Beta, Categorical, Dirichlet, Gamma, Normal, kl_divergence

torch.manual_seed(0)
x = torch.randn(60, 2)
y = x @ torch.tensor([1.0, -2.0]) + 0.5 + 0.2 * torch.randn(60)


class BayesianLinear(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w_mu = nn.Parameter(torch.zeros(n))
        self.w_rho = nn.Parameter(torch.full((n,), -2.0))
        self.b_mu = nn.Parameter(torch.zeros(1))
        self.b_rho = nn.Parameter(torch.full((1,), -2.0))

    def posteriors(self):
        sp = nn.functional.softplus
        return Normal(self.w_mu, sp(self.w_rho)), Normal(self.b_mu, sp(self.b_rho))

    def forward(self, x):
        qw, qb = self.posteriors()
        return x @ qw.rsample() + qb.rsample()

    def kl(self):
        return sum(kl_divergence(q, Normal(0.0, 1.0)).sum() for q in self.posteriors())


model = BayesianLinear(2)
opt = torch.optim.Adam(model.parameters(), lr=0.05)
for step in range(60):
    log_lik = torch.stack([Normal(model(x), 0.2).log_prob(y).sum() for _ in range(2)]).mean()
    elbo = log_lik - model.kl()
    opt.zero_grad()
    (-elbo).backward()
    opt.step()
    if step % 20 == 0:
        print(f"{step} elbo {elbo.item():.3f}")
print(model.w_mu, model.b_mu)
print(Beta(2.0, 3.0).mean, Gamma(torch.tensor(2.0), torch.tensor(1.0)).sample((3,)), Bernoulli(0.3).sample((5,)))
print(Categorical(logits=torch.tensor([1.0, 2.0, 0.5])), Categorical(torch.tensor([0.2, 0.8])).entropy())
print(Dirichlet(torch.ones(3)).sample(), dist.Poisson(4.0).log_prob(torch.tensor(3.0)))
mix = dist.MixtureSameFamily(Categorical(torch.ones(2)), Normal(torch.tensor([-1.0, 1.0]), torch.ones(2)))
print(mix.log_prob(torch.tensor(0.3)), mix.sample((2,)))
diag = dist.Independent(Normal(torch.zeros(3), torch.ones(3)), 1)
print(diag, diag.log_prob(torch.ones(3)), diag.batch_shape, diag.event_shape)
flow = dist.TransformedDistribution(Normal(0.0, 1.0), [dist.AffineTransform(1.0, 2.0), dist.ExpTransform()])
print(flow.sample((2,)), flow.log_prob(torch.tensor(2.0)))
try:
    Normal(torch.tensor(0.0), torch.tensor(-1.0))
except ValueError as error:
    print(error)


def metropolis(logp, n, start):
    chain, here = [], start
    for _ in range(n):
        new = here + 0.5 * torch.randn_like(here)
        if torch.rand(()).log() < logp(new) - logp(here):
            here = new
        chain.append(here)
    return torch.stack(chain)


chain = metropolis(lambda z: Normal(2.0, 1.0).log_prob(z).sum(), 200, torch.zeros(1))
print(chain[50:].mean(), chain[50:].std())
