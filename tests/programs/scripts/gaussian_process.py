# Gaussian-process regression with a learned kernel, and Bayesian linear regression, by hand.
import math

import torch
from torch.distributions import Gamma, MultivariateNormal, Normal, kl_divergence, LowRankMultivariateNormal, MixtureSameFamily, Categorical, Independent, StudentT, LKJCholesky

torch.manual_seed(3)
torch.set_default_dtype(torch.float64)
X = torch.linspace(-3, 3, 25).unsqueeze(1)
y = torch.sin(2 * X).squeeze() + 0.1 * torch.randn(25)
Xs = torch.linspace(-4, 4, 9).unsqueeze(1)


def rbf(a, b, log_l, log_s):
    return (2 * log_s).exp() * torch.exp(-0.5 * (a - b.T).pow(2) / (2 * log_l).exp())


def matern32(a, b, log_l, log_s):
    d = math.sqrt(3) * (a - b.T).abs() / log_l.exp()
    return (2 * log_s).exp() * (1 + d) * (-d).exp()


for kernel in (rbf, matern32):
    theta = torch.zeros(3, requires_grad=True)
    opt = torch.optim.LBFGS([theta], lr=0.5, max_iter=20, line_search_fn="strong_wolfe", history_size=5, tolerance_grad=1e-9)

    def nll():
        K = kernel(X, X, theta[0], theta[1]) + (2 * theta[2]).exp() * torch.eye(len(X))
        L = torch.linalg.cholesky(K)
        alpha = torch.cholesky_solve(y.unsqueeze(1), L)
        return 0.5 * y @ alpha.squeeze() + L.diagonal().log().sum() + 0.5 * len(X) * math.log(2 * math.pi)

    def closure():
        opt.zero_grad()
        loss = nll()
        loss.backward()
        return loss

    for _ in range(3):
        print(kernel.__name__, f"{opt.step(closure).item():.6f}")
    print(theta.detach().exp())
    with torch.no_grad():
        K = kernel(X, X, theta[0], theta[1]) + (2 * theta[2]).exp() * torch.eye(len(X))
        Ks, Kss = kernel(X, Xs, theta[0], theta[1]), kernel(Xs, Xs, theta[0], theta[1])
        L = torch.linalg.cholesky(K)
        v = torch.linalg.solve_triangular(L, Ks, upper=False)
        mean = v.T @ torch.linalg.solve_triangular(L, y[:, None], upper=False)
        cov = Kss - v.T @ v
        print(mean.squeeze(), cov.diagonal().clamp_min(0).sqrt())
    print(torch.autograd.functional.hessian(lambda t: kernel(X[:3], X[:3], t[0], t[1]).sum(), theta.detach()[:2]))

mvn = MultivariateNormal(torch.zeros(25), K.detach())
print(mvn.log_prob(y), torch.isclose(-nll(), mvn.log_prob(y), atol=1e-6))
print(mvn.entropy(), mvn.sample((2,)).shape, mvn.rsample().std())

Phi = torch.cat([X**k for k in range(4)], 1)
alpha0, noise = 1.0, 0.1
S = torch.linalg.inv(alpha0 * torch.eye(4) + Phi.T @ Phi / noise)
m = S @ Phi.T @ y / noise
post = MultivariateNormal(m, covariance_matrix=(S + S.T) / 2)
print(post.mean, post.stddev, kl_divergence(post, MultivariateNormal(torch.zeros(4), torch.eye(4))))
q_mu, q_rho = torch.zeros(4, requires_grad=True), torch.zeros(4, requires_grad=True)
adam = torch.optim.Adam([{"params": [q_mu], "lr": 0.05}, {"params": [q_rho], "lr": 0.02}], amsgrad=True)
for it in range(60):
    q = Normal(q_mu, torch.nn.functional.softplus(q_rho))
    w = q.rsample((4,))
    elbo = Normal(w @ Phi.T, noise**0.5).log_prob(y).sum(-1).mean() - kl_divergence(q, Normal(0.0, 1.0)).sum()
    adam.zero_grad()
    (-elbo).backward()
    adam.step()
    if it % 20 == 0:
        print(it, f"{elbo.item():.4f}")
print(q_mu, (q_mu - m).abs().max() < 1.5)
lr = LowRankMultivariateNormal(torch.zeros(3), torch.tensor([[1.0], [0.5], [-1]]), torch.ones(3))
print(lr.covariance_matrix, lr.log_prob(torch.ones(3)), lr.entropy())
mix = MixtureSameFamily(Categorical(torch.tensor([0.3, 0.7])), Independent(Normal(torch.tensor([[0.0, 1], [2, 3]]), torch.ones(2, 2)), 1))
print(mix, mix.mean, mix.variance, mix.log_prob(torch.zeros(2)))
print(StudentT(3.0).log_prob(torch.tensor(0.5)), Gamma(2.0, 3.0).rsample((3,)), Gamma(torch.tensor([1.0, 2]), 1.0).entropy())
print(LKJCholesky(3, 1.5).log_prob(torch.eye(3)))
torch.set_default_dtype(torch.float32)
