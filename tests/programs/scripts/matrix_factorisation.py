import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm, trange


class MF(nn.Module):
    def __init__(self, n_users, n_items, n_factors=4):
        super().__init__()
        self.user_factors = nn.Embedding(n_users, n_factors)
        self.item_factors = nn.Embedding(n_items, n_factors)
        self.user_bias = nn.Embedding(n_users, 1)
        self.item_bias = nn.Embedding(n_items, 1)
        self.user_factors.weight.data.uniform_(0, 0.05)
        self.item_factors.weight.data.uniform_(0, 0.05)
        nn.init.zeros_(self.user_bias.weight)
        nn.init.zeros_(self.item_bias.weight)

    def forward(self, u, i):
        dot = (self.user_factors(u) * self.item_factors(i)).sum(dim=1, keepdim=True)
        return (dot + self.user_bias(u) + self.item_bias(i)).squeeze()


torch.manual_seed(0)
true_u, true_i = torch.randn(20, 3), torch.randn(15, 3)
ratings = true_u @ true_i.T
u, i = torch.where(torch.rand(20, 15) < 0.5)
r = ratings[u, i]
print(len(r), r.mean(), r.min(), r.max())
loader = DataLoader(TensorDataset(u, i, r), batch_size=32, shuffle=True)
model = MF(20, 15)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, weight_decay=1e-5, momentum=0.5)
loss_fn = nn.MSELoss()
for epoch in trange(5):
    losses = []
    for uu, ii, rr in tqdm(loader, desc=f"epoch {epoch}", leave=False):
        optimizer.zero_grad()
        loss = loss_fn(model(uu, ii), rr)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    tqdm.write(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}")
with torch.no_grad():
    scores = model.user_factors.weight @ model.item_factors.weight.t() + model.item_bias.weight.t()
    seen = torch.zeros_like(scores, dtype=torch.bool)
    seen[u, i] = True
    top = scores.masked_fill(seen, float("-inf")).topk(3, dim=1)
print(top.indices[:4], top.values[0])
# Gradients of a frequent and of an absent row
emb = nn.Embedding(5, 2, max_norm=1.0)
emb(torch.tensor([1, 1, 3])).sum().backward()
print(emb.weight.grad, emb.weight.norm(dim=1)[1] <= 1.0001)
P = torch.rand(6, 4)
W, H = torch.rand(6, 2), torch.rand(2, 4)
for _ in range(50):
    H *= (W.T @ P) / (W.T @ W @ H + 1e-9)
    W *= (P @ H.T) / (W @ H @ H.T + 1e-9)
print((P - W @ H).norm())
