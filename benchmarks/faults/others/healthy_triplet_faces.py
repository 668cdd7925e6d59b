import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)
PEOPLE, DIM, NUISANCE = 30, 10, 22

identity = torch.randn(PEOPLE, DIM)
mixing = torch.randn(DIM + NUISANCE, 32) / 32**0.5


def photo(person):
    pose = 1.5 * torch.randn(len(person), NUISANCE)
    return torch.cat([identity[person] + 0.15 * torch.randn(len(person), DIM), pose], 1) @ mixing


class EmbeddingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 64), nn.PReLU(), nn.Linear(64, 64), nn.PReLU(), nn.Linear(64, 16))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class TripletNet(nn.Module):
    def __init__(self, embedding_net):
        super().__init__()
        self.embedding_net = embedding_net

    def forward(self, a, p, n):
        return self.embedding_net(a), self.embedding_net(p), self.embedding_net(n)


net = TripletNet(EmbeddingNet())
criterion = nn.TripletMarginLoss(margin=0.5)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)

for step in range(500):
    anchor = torch.randint(0, PEOPLE, (64,))
    other = (anchor + torch.randint(1, PEOPLE, (64,))) % PEOPLE
    a, p, n = net(photo(anchor), photo(anchor), photo(other))
    loss = criterion(a, p, n)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step} triplet loss {loss.item():.4f}")

# retrieval: is the nearest photo of another shooting of the same person?
with torch.no_grad():
    people = torch.arange(PEOPLE).repeat(5)
    gallery, queries = net.embedding_net(photo(people)), net.embedding_net(photo(people))
    nearest = torch.cdist(queries, gallery).argmin(1)
    hit = (people[nearest] == people).float().mean().item()
print(f"final retrieval accuracy {hit:.3f}")
