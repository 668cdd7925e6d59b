# cause: parameters-forgotten
# symptom: the error comes down to what the biases explain and stops; the film vectors never change
import torch
import torch.nn as nn

USERS, FILMS, RANK = 120, 80, 4


class Side(nn.Module):
    """Vectors and biases of one side of the rating matrix."""

    def __init__(self, count, rank, scale):
        super().__init__()
        self.vec = nn.Embedding(count, rank)
        self.bias = nn.Embedding(count, 1)
        nn.init.normal_(self.vec.weight, std=scale)
        nn.init.zeros_(self.bias.weight)

    def forward(self, ids):
        return self.vec(ids), self.bias(ids).squeeze(1)


def make_ratings(n=5000):
    p = torch.randn(USERS, RANK)
    q = torch.randn(FILMS, RANK)
    u = torch.randint(0, USERS, (n,))
    f = torch.randint(0, FILMS, (n,))
    r = 3.0 + 0.6 * (p[u] * q[f]).sum(1) + 0.1 * torch.randn(n)
    return u, f, r


torch.manual_seed(31)
u, f, r = make_ratings()
n_train = 4200

users = Side(USERS, RANK, 0.1)
films = Side(FILMS, RANK, 0.1)
offset = nn.Parameter(torch.tensor(3.0))
trainable = list(users.parameters()) + [films.bias.weight, offset]  # <- fault
optimizer = torch.optim.Adam(trainable, lr=0.02)  # <- fault


def predict(u, f):
    pu, bu = users(u)
    qf, bf = films(f)
    return offset + bu + bf + (pu * qf).sum(1)


for epoch in range(16):
    se = 0.0
    for idx in torch.randperm(n_train).split(100):
        err = predict(u[idx], f[idx]) - r[idx]
        loss = err.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        se += err.detach().pow(2).sum().item()
    with torch.no_grad():
        test = (predict(u[n_train:], f[n_train:]) - r[n_train:]).pow(2).mean().sqrt().item()
    if epoch % 3 == 0:
        print(f"epoch {epoch:2d}  train rmse {(se / n_train) ** 0.5:.3f}  test rmse {test:.3f}")
