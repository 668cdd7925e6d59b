# cause: functional-dropout-always
# symptom: two passes over the same test set in eval mode give different R2
import torch
from torch import nn
import torch.nn.functional as F

# Predict a drug response score from a panel of gene expression levels.


class ResponseModel(nn.Module):
    def __init__(self, n_genes, width=128, p_drop=0.5):
        super().__init__()
        self.p_drop = p_drop
        self.embed = nn.Linear(n_genes, width)
        self.mix = nn.Linear(width, width)
        self.score = nn.Linear(width, 1)

    def forward(self, genes):
        h = F.gelu(self.embed(genes))
        h = F.dropout(h, self.p_drop)  # <- fault
        h = h + F.gelu(self.mix(h))
        return self.score(h).squeeze(-1)


def simulate(n, n_genes, loadings):
    pathway = torch.randn(n, loadings.shape[0])
    genes = pathway @ loadings + 0.3 * torch.randn(n, n_genes)
    response = pathway[:, 0] - 0.7 * pathway[:, 1] + 0.5 * torch.tanh(pathway[:, 2] * pathway[:, 3])
    return genes, response + 0.1 * torch.randn(n)


def r2(pred, target):
    return 1 - ((pred - target) ** 2).sum().item() / ((target - target.mean()) ** 2).sum().item()


def train(model, x, y, epochs=40, batch=64):
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for ep in range(epochs):
        model.train()
        perm = torch.randperm(len(x))
        tot = 0.0
        for idx in perm.split(batch):
            opt.zero_grad()
            loss = F.mse_loss(model(x[idx]), y[idx])
            loss.backward()
            opt.step()
            tot += loss.item() * len(idx)
        if ep % 5 == 4:
            print(f"[{ep + 1:3d}] mse {tot / len(x):.4f}")


def main():
    torch.manual_seed(42)
    loadings = torch.randn(6, 60) / 6 ** 0.5
    x, y = simulate(2000, 60, loadings)
    x_test, y_test = simulate(500, 60, loadings)
    model = ResponseModel(60)
    train(model, x, y)
    model.eval()
    with torch.no_grad():
        for attempt in ("first", "second"):
            print(f"test R2, {attempt} pass: {r2(model(x_test), y_test):.4f}")


main()
