"""Sentences of different lengths, one per step (batch size 1), with layer norm."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(67)


class Brackets(Dataset):
    """Is a string of brackets balanced at each prefix?  0 = "(", 1 = ")"."""

    def __init__(self, n):
        self.rows = []
        for _ in range(n):
            length = int(torch.randint(6, 16, (1,)))
            bits = torch.randint(0, 2, (length,))
            depth = (1 - 2 * bits).cumsum(0)
            self.rows.append((bits, torch.sign(depth) + 1))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(2, 12)
        self.rnn = nn.LSTM(12, 24, batch_first=True)
        self.norm = nn.LayerNorm(24)
        self.out = nn.Linear(24, 3)

    def forward(self, bits):
        return self.out(self.norm(self.rnn(self.embed(bits))[0]))


train = DataLoader(Brackets(500), batch_size=1, shuffle=True)
test = DataLoader(Brackets(150), batch_size=1)
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(2):
    total = 0.0
    for bits, sign in train:
        loss = nn.functional.cross_entropy(model(bits)[0], sign[0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(train):.4f}")

model.eval()
right = seen = 0
with torch.no_grad():
    for bits, sign in test:
        right += (model(bits).argmax(-1) == sign).sum().item()
        seen += sign.numel()
print(f"final accuracy {right / seen:.3f}")
