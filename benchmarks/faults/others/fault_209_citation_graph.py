# cause: functional-dropout-always
# symptom: scores of the same nodes change at each evaluation, and the accuracy is low (accuracy 0.694; without the fault: accuracy 0.906)
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)

# A citation graph of four fields: papers cite mostly within their field.
N, FIELDS, WORDS = 300, 4, 12
field = torch.arange(N) % FIELDS
same = field[:, None] == field[None, :]
edges = torch.rand(N, N) < torch.where(same, 0.03, 0.006)
adj = (edges | edges.T).float()
adj.fill_diagonal_(1.0)
norm = adj.sum(1).rsqrt()
adj = norm[:, None] * adj * norm[None, :]
words = F.one_hot(field, FIELDS).float() @ torch.randn(FIELDS, WORDS) * 0.6 + torch.randn(N, WORDS)


class GraphNet(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.lin1 = nn.Linear(WORDS, hidden)
        self.lin2 = nn.Linear(hidden, FIELDS)

    def forward(self, x, a):
        x = F.dropout(x, p=0.5)  # <- fault
        x = F.relu(a @ self.lin1(x))
        x = F.dropout(x, p=0.6)  # <- fault
        return a @ self.lin2(x)


perm = torch.randperm(N)
known, hidden = perm[:120], perm[120:]
model = GraphNet()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)

for epoch in range(1, 301):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(words, adj)[known], field[known])
    loss.backward()
    optimizer.step()
    if epoch % 50 == 0:
        model.eval()
        with torch.no_grad():
            guess = model(words, adj).argmax(1)
        acc = (guess[hidden] == field[hidden]).float().mean().item()
        print(f"{epoch}: loss {loss.item():.3f} accuracy {acc:.3f}")

model.eval()
with torch.no_grad():
    guess = model(words, adj).argmax(1)
print(f"final accuracy {(guess[hidden] == field[hidden]).float().mean().item():.3f}")
