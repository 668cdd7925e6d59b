import math

import torch

torch.manual_seed(0)
X = torch.cat([torch.randn(40, 2) * 0.4 + c for c in torch.tensor([[0.0, 0.0], [3.0, 3.0], [0.0, 4.0]])])


def kmeans(X, k, iters=10):
    centers = X[torch.randperm(len(X))[:k]].clone()
    for _ in range(iters):
        labels = torch.cdist(X, centers).argmin(dim=1)
        for j in range(k):
            if (labels == j).any():
                centers[j] = X[labels == j].mean(dim=0)
    return centers, labels


centers, labels = kmeans(X, 3)
print(centers[centers.sum(1).argsort()], labels.bincount())
sums = torch.zeros(3, 2).index_add_(0, labels, X) / torch.zeros(3).scatter_add_(0, labels, torch.ones(120)).unsqueeze(1)
print(torch.allclose(sums, centers, atol=1e-5), labels.unique(return_counts=True))
Xc = X - X.mean(0)
U, S, Vh = torch.linalg.svd(Xc, full_matrices=False)
print(S, (Xc @ Vh.T).std(0), (S**2 / (S**2).sum()))
evals, evecs = torch.linalg.eigh(torch.cov(X.T))
print(evals.flip(0), torch.allclose(evals.flip(0), S**2 / (len(X) - 1), rtol=1e-4))
A = torch.stack([torch.ones(120), X[:, 0]], 1)
fit = torch.linalg.lstsq(A, X[:, 1:])
solution, rank = fit.solution, fit.rank
normal = torch.linalg.solve(A.T @ A, A.T @ X[:, 1:])
print(solution.squeeze(), torch.allclose(solution, normal, atol=1e-4), torch.linalg.pinv(A).shape)
ridge = torch.linalg.inv(A.T @ A + 0.1 * torch.eye(2)) @ A.T @ X[:, 1]
print(ridge, torch.linalg.cond(A), torch.linalg.matrix_rank(A), torch.linalg.det(A.T @ A).log())


def gmm_em(X, k, iters=15):
    n, d = X.shape
    mu, cov, pi = centers.clone() + 0.1, torch.eye(d).expand(k, d, d).clone(), torch.full((k,), 1 / k)
    for _ in range(iters):
        diff = X[:, None] - mu
        maha = torch.einsum("nkd,kde,nke->nk", diff, torch.inverse(cov), diff)
        logp = pi.log() - 0.5 * (maha + torch.logdet(cov) + d * math.log(2 * math.pi))
        ll = torch.logsumexp(logp, dim=1)
        resp = (logp - ll[:, None]).exp()
        nk = resp.sum(0)
        pi, mu = nk / n, resp.T @ X / nk[:, None]
        diff = X[:, None] - mu
        cov = torch.einsum("nk,nkd,nke->kde", resp, diff, diff) / nk[:, None, None] + 1e-6 * torch.eye(d)
    return pi, mu, cov, ll.sum()


pi, mu, cov, ll = gmm_em(X, 3)
print(pi.sort().values, ll)
print(torch.distributions.MultivariateNormal(mu[0], cov[0]).log_prob(mu[0]))
x, y = torch.linspace(0, 5, 12), torch.sin(torch.linspace(0, 5, 12)) + 0.1 * torch.randn(12)


def rbf(a, b, ls, var):
    return var * torch.exp(-0.5 * (a[:, None] - b[None, :]) ** 2 / ls**2)


log_params = torch.zeros(3, requires_grad=True)
opt = torch.optim.SGD([log_params], lr=0.02)
for it in range(20):
    ls, var, noise = log_params.exp()
    K = rbf(x, x, ls, var) + noise**2 * torch.eye(12)
    L = torch.linalg.cholesky(K)
    alpha = torch.cholesky_solve(y[:, None], L).squeeze()
    nll = 0.5 * y @ alpha + L.diagonal().log().sum() + 6 * math.log(2 * math.pi)
    opt.zero_grad()
    nll.backward()
    opt.step()
print(nll, log_params)
xs = torch.tensor([1.5, 2.5])
with torch.no_grad():
    v = torch.linalg.solve_triangular(L, rbf(x, xs, ls, var), upper=False)
    print(rbf(xs, x, ls, var) @ alpha, var - (v**2).sum(0))
power = torch.matrix_power(torch.tensor([[0.9, 0.1], [0.5, 0.5]]), 30)
print(power, torch.linalg.norm(power), torch.trace(power), torch.kron(torch.eye(2), power).shape)
