# cause: zero_grad-missing
# symptom: the error grows within the first epochs until it is nan (rmse nan; without the fault: rmse 0.209)
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Ratings(nn.Module):
    def __init__(self, users, films, dim=6):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.film = nn.Embedding(films, dim)
        self.film_bias = nn.Embedding(films, 1)
        nn.init.normal_(self.user.weight, std=0.3)
        nn.init.normal_(self.film.weight, std=0.3)
        nn.init.zeros_(self.film_bias.weight)

    def forward(self, u, f):
        return (self.user(u) * self.film(f)).sum(1) + self.film_bias(f).squeeze(1)


class Trainer:
    def __init__(self, model, loader, lr):
        self.model, self.loader = model, loader
        self.optim = torch.optim.SGD(model.parameters(), lr=lr)
        self.loss_fn = nn.MSELoss()

    def fit(self, epochs):
        for epoch in range(epochs):
            mean = self.run_epoch()
            if epoch % 5 == 4:
                print(f"[{epoch + 1:2d}] train mse {mean:.3f}")

    def run_epoch(self):
        total = 0.0
        for u, f, r in self.loader:
            loss = self.loss_fn(self.model(u, f), r)
            loss.backward()  # <- fault
            self.optim.step()  # <- fault
            total += loss.item()
        return total / len(self.loader)

    @torch.no_grad()
    def rmse(self, u, f, r):
        return (self.model(u, f) - r).pow(2).mean().sqrt().item()


def main():
    torch.manual_seed(5)
    users, films = 60, 40
    taste, genre = torch.randn(users, 3), torch.randn(films, 3)
    u, f = torch.randint(users, (6000,)), torch.randint(films, (6000,))
    r = (taste[u] * genre[f]).sum(1) * 0.6 + 0.2 * torch.randn(6000)
    loader = DataLoader(TensorDataset(u[:5000], f[:5000], r[:5000]), batch_size=100, shuffle=True)
    trainer = Trainer(Ratings(users, films), loader, lr=2.0)
    trainer.fit(20)
    print(f"constant guess rmse {r.std().item():.3f}")
    print(f"final rmse {trainer.rmse(u[5000:], f[5000:], r[5000:]):.3f}")


if __name__ == "__main__":
    main()
