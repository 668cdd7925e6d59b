# cause: division-by-zero
# symptom: the loss is NaN as soon as a sequence is empty (share of words whose neighbour is of the same subject 0.167; without the fault: share of words whose neighbour is of the same subject 1.000)
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(70)

# Words of 6 subjects; a sentence stays with one subject. Skip-gram with negative samples should find the subjects.
SUBJECTS, PER = 6, 12
V = SUBJECTS * PER
sentences = torch.randint(0, SUBJECTS, (1200, 1)) * PER + torch.randint(0, PER, (1200, 8))
stray = torch.rand(1200, 8) < 0.1
sentences = torch.where(stray, torch.randint(0, V, (1200, 8)), sentences)

# continuous bag of words: rare words (-1) are left out of the context
rare = torch.rand(1200, 8) < 0.15
kept = torch.where(rare, -1, sentences)
windows, words = [], []
for i in range(1, 7):
    windows.append(torch.stack([kept[:, i - 1], kept[:, i + 1]], dim=1))
    words.append(sentences[:, i])
pairs = TensorDataset(torch.cat(windows), torch.cat(words))


class SkipGram(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.center = nn.Embedding(V, dim, sparse=False)
        self.context = nn.Embedding(V, dim)
        nn.init.uniform_(self.center.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.context.weight)

    def forward(self, c, o, negatives):
        keep = (c >= 0).float().unsqueeze(2)
        c = c.clamp(min=0)
        v = (self.center(c) * keep).sum(1) / keep.sum(1)  # <- fault
        pos = (v * self.context(o)).sum(1)
        neg = torch.bmm(self.context(negatives), v.unsqueeze(2)).squeeze(2)
        return -(F.logsigmoid(pos) + F.logsigmoid(-neg).sum(1)).mean()


model = SkipGram()
opt = torch.optim.Adam(model.parameters(), lr=0.01)
loader = DataLoader(pairs, batch_size=256, shuffle=True)
for epoch in range(4):
    total = 0.0
    for c, o in loader:
        loss = model(c, o, torch.randint(0, V, (len(c), 5)))
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / len(loader):.4f}")

with torch.no_grad():
    e = F.normalize(model.center.weight, dim=1)
    sim = e @ e.T - 2 * torch.eye(V)
    neighbour = sim.argmax(1)
purity = (neighbour // PER == torch.arange(V) // PER).float().mean().item()
print(f"final share of words whose neighbour is of the same subject {purity:.3f}")
