# cause: broadcast-in-loss
# symptom: only the mean rating is learned (test rmse 1.051; without the fault: test rmse 0.286)
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)
N_USERS, N_ITEMS, RANK = 120, 80, 3

# "true" tastes, from which ratings between 1 and 5 come
taste = torch.randn(N_USERS, RANK)
trait = torch.randn(N_ITEMS, RANK)
user_mean = 0.4 * torch.randn(N_USERS)
item_mean = 0.4 * torch.randn(N_ITEMS)

users = torch.randint(0, N_USERS, (6000,))
items = torch.randint(0, N_ITEMS, (6000,))
score = 3 + 0.6 * (taste[users] * trait[items]).sum(1) + user_mean[users] + item_mean[items]
ratings = (score + 0.2 * torch.randn(6000)).clamp(1, 5)

train_data = TensorDataset(users[:5000], items[:5000], ratings[:5000])
test_u, test_i, test_r = users[5000:], items[5000:], ratings[5000:]


class MatrixFactorization(nn.Module):
    def __init__(self, n_users, n_items, dim=8):
        super().__init__()
        self.user = nn.Embedding(n_users, dim)
        self.item = nn.Embedding(n_items, dim)
        self.user_bias = nn.Embedding(n_users, 1)
        self.item_bias = nn.Embedding(n_items, 1)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        nn.init.zeros_(self.user_bias.weight)
        nn.init.zeros_(self.item_bias.weight)
        self.mu = nn.Parameter(torch.zeros(1))

    def forward(self, u, i):
        dot = (self.user(u) * self.item(i)).sum(1, keepdim=True)
        return (dot + self.user_bias(u) + self.item_bias(i) + self.mu)  # <- fault


model = MatrixFactorization(N_USERS, N_ITEMS)
with torch.no_grad():
    model.mu.fill_(train_data.tensors[2].mean())
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-5)
loader = DataLoader(train_data, batch_size=128, shuffle=True)

for epoch in range(20):
    losses = []
    for u, i, r in loader:
        optimizer.zero_grad()
        prediction = model(u, i)
        loss = nn.functional.mse_loss(prediction, r)  # <- fault
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1} train mse {sum(losses) / len(losses):.3f}")

with torch.no_grad():
    rmse = (model(test_u, test_i).flatten() - test_r).pow(2).mean().sqrt().item()
baseline = (test_r - ratings[:5000].mean()).pow(2).mean().sqrt().item()
print(f"rmse of the mean rating {baseline:.3f}")
print(f"final test rmse {rmse:.3f}")
