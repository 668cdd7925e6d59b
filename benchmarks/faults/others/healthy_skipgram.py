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

centers, contexts = [], []
for shift in (1, 2):
    centers += [sentences[:, :-shift].flatten(), sentences[:, shift:].flatten()]
    contexts += [sentences[:, shift:].flatten(), sentences[:, :-shift].flatten()]
pairs = TensorDataset(torch.cat(centers), torch.cat(contexts))


class SkipGram(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.center = nn.Embedding(V, dim, sparse=False)
        self.context = nn.Embedding(V, dim)
        nn.init.uniform_(self.center.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.context.weight)

    def forward(self, c, o, negatives):
        v = self.center(c)
        pos = (v * self.context(o)).sum(1)
        neg = torch.bmm(self.context(negatives), v.unsqueeze(2)).squeeze(2)
        return -(F.logsigmoid(pos) + F.logsigmoid(-neg).sum(1)).mean()


model = SkipGram()
opt = torch.optim.Adam(model.parameters(), lr=0.01)
loader = DataLoader(pairs, batch_size=512, shuffle=True)
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
