# cause: sqrt-at-zero
# symptom: the loss is finite, the gradients are NaN: the distances of photos to themselves (retrieval accuracy 0.033; without the fault: retrieval accuracy 0.993)
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


def pairwise(e):
    squares = ((e[:, None] - e[None, :]) ** 2).sum(-1)
    return torch.sqrt(squares)  # <- fault


def batch_hard(e, person, margin=0.5):
    d = pairwise(e)
    same = person[:, None] == person[None, :]
    furthest = (d * same).max(1).values
    nearest = d.masked_fill(same, 10.0).min(1).values
    return F.relu(furthest - nearest + margin).mean()


net = EmbeddingNet()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)

for step in range(250):
    person = torch.randint(0, PEOPLE, (48,))
    loss = batch_hard(net(photo(person)), person)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step} triplet loss {loss.item():.4f}")

# retrieval: is the nearest photo of another shooting of the same person?
with torch.no_grad():
    people = torch.arange(PEOPLE).repeat(5)
    gallery, queries = net(photo(people)), net(photo(people))
    nearest = torch.cdist(queries, gallery).argmin(1)
    hit = (people[nearest] == people).float().mean().item()
print(f"final retrieval accuracy {hit:.3f}")
