# A normalizing flow of affine couplings, fitted to two moons.
import math

import torch
from torch import nn
from torch.distributions import MultivariateNormal, Independent, Normal, TransformedDistribution
from torch.distributions import transforms as T
from torch.distributions import constraints

torch.manual_seed(0)


def two_moons(n):
    half = n // 2
    theta = torch.rand(half) * math.pi
    a = torch.stack((theta.cos(), theta.sin()), 1)
    b = torch.stack((1 - theta.cos(), 0.5 - theta.sin()), 1)
    return torch.cat((a, b)) + 0.08 * torch.randn(n, 2)


class Coupling(nn.Module):
    def __init__(self, mask, hidden=24):
        super().__init__()
        self.register_buffer("mask", mask)
        self.s = nn.Sequential(nn.Linear(2, hidden), nn.LeakyReLU(), nn.Linear(hidden, 2), nn.Tanh())
        self.t = nn.Sequential(nn.Linear(2, hidden), nn.LeakyReLU(), nn.Linear(hidden, 2))
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x):
        masked = x * self.mask
        s = self.s(masked) * (1 - self.mask) * self.scale
        t = self.t(masked) * (1 - self.mask)
        return masked + (1 - self.mask) * (x - t) * torch.exp(-s), -s.sum(-1)

    def inverse(self, z):
        masked = z * self.mask
        s = self.s(masked) * (1 - self.mask) * self.scale
        t = self.t(masked) * (1 - self.mask)
        return masked + (1 - self.mask) * (z * s.exp() + t)


class RealNVP(nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        masks = [torch.tensor([k % 2, (k + 1) % 2], dtype=torch.float) for k in range(depth)]
        self.layers = nn.ModuleList(Coupling(m) for m in masks)
        self.prior = MultivariateNormal(torch.zeros(2), torch.eye(2))

    def log_prob(self, x):
        total = x.new_zeros(x.shape[0])
        for layer in reversed(self.layers):
            x, logdet = layer(x)
            total += logdet
        return self.prior.log_prob(x) + total

    def sample(self, n):
        z = self.prior.sample((n,))
        for layer in self.layers:
            z = layer.inverse(z)
        return z


flow = RealNVP()
optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3)
for it in range(60):
    loss = -flow.log_prob(two_moons(128)).mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
    optimizer.step()
    if it % 15 == 0:
        print(f"{it:3d} nll {loss.item():.4f}")
with torch.inference_mode():
    samples = flow.sample(200)
    print(samples.mean(0), samples.std(0), samples.shape)
x = two_moons(6)
z = x
for layer in reversed(flow.layers):
    z, _ = layer(z)
for layer in flow.layers:
    z = layer.inverse(z)
print("inverse", torch.allclose(x, z, atol=1e-5))
jac = torch.autograd.functional.jacobian(lambda v: flow.layers[0](v[None])[0][0], x[0])
print("logdet", torch.slogdet(jac)[1], flow.layers[0](x[:1])[1])

base = Independent(Normal(torch.zeros(2), torch.ones(2)), 1)
loc, scale = torch.zeros(2, requires_grad=True), torch.ones(2, requires_grad=True)
affine = T.AffineTransform(loc, scale, event_dim=1)
warp = TransformedDistribution(base, [affine, T.IndependentTransform(T.SinhTransform() if hasattr(T, "SinhTransform") else T.TanhTransform(), 1)])
y = torch.tensor([[0.2, -0.3], [0.5, 0.1]])
print(warp.log_prob(y), warp.event_shape, warp.batch_shape)
warp.log_prob(y).sum().backward()
print(loc.grad, scale.grad)
for t in (T.ExpTransform(), T.SigmoidTransform(), T.SoftplusTransform(), T.TanhTransform(), T.PowerTransform(torch.tensor(2.0)), T.AbsTransform(), T.StickBreakingTransform(), T.SoftmaxTransform()):
    v = torch.tensor([0.3, 0.7, 1.2])
    out = t(v)
    try:
        ld = t.log_abs_det_jacobian(v, out)
    except NotImplementedError:
        ld = None
    print(t, out, t.inv(out), ld, t.bijective, t.forward_shape((3,)))
stack = T.ComposeTransform([T.ExpTransform(), T.AffineTransform(1.0, 2.0)])
print(stack, stack.inv, stack.domain, stack.codomain, stack(torch.zeros(2)))
chol = T.CorrCholeskyTransform()(torch.tensor([0.1, -0.4, 0.8]))
print(chol, (chol @ chol.mT).diagonal(), constraints.corr_cholesky.check(chol))
print(T.CatTransform([T.ExpTransform(), T.identity_transform], dim=0, lengths=[2, 1])(torch.tensor([0.0, 1.0, 2.0])))
print(torch.distributions.biject_to(constraints.interval(-1, 3))(torch.tensor([-5.0, 0.0, 5.0])))
print(torch.distributions.transform_to(constraints.positive_definite)(torch.eye(2)))
