# cause: parameters-forgotten
# symptom: the model does no better than one blind to the order of the words (accuracy 0.480; without the fault: accuracy 1.000)
import torch
import torch.nn as nn

torch.manual_seed(33)
SEQ, VOCAB = 8, 6


# Does the first "1" stand before the first "2"?
def sequences(n):
    x = torch.randint(3, VOCAB, (n, SEQ))
    place = torch.rand(n, SEQ).argsort(1)[:, :2]
    x.scatter_(1, place[:, :1], 1)
    x.scatter_(1, place[:, 1:], 2)
    return x, (place[:, 0] < place[:, 1]).long()


class OrderTransformer(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.token = nn.Embedding(VOCAB, dim)
        self.position = torch.zeros(SEQ, dim)  # <- fault
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, dim))
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        h = self.token(x) + self.position
        n = self.norm1(h)
        h = h + self.attention(n, n, n, need_weights=False)[0]
        h = h + self.mlp(self.norm2(h))
        return self.head(h.mean(dim=1))


model = OrderTransformer()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)  # <- fault
for step in range(400):
    x, y = sequences(64)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 80 == 0:
        print(f"step {step:3d} loss {loss.item():.4f}")

x, y = sequences(1000)
with torch.no_grad():
    accuracy = (model(x).argmax(1) == y).float().mean().item()
print(f"final accuracy {accuracy:.3f}")
