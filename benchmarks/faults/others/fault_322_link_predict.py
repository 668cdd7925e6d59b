# cause: sigmoid-before-bce-with-logits
# symptom: the loss gets stuck at about 0.51 and never comes close to zero
"""Co-authorship link prediction with node embeddings and a bilinear decoder."""
import argparse
import torch
import torch.nn as nn


def build_graph(n_nodes, n_groups, gen):
    group = torch.randint(0, n_groups, (n_nodes,), generator=gen)
    same = group[:, None] == group[None, :]
    prob = torch.where(same, 0.97, 0.01)
    upper = torch.triu(torch.rand(n_nodes, n_nodes, generator=gen) < prob, diagonal=1)
    return upper


class LinkScorer(nn.Module):
    def __init__(self, n_nodes, dim):
        super().__init__()
        self.emb = nn.Embedding(n_nodes, dim)
        nn.init.normal_(self.emb.weight, std=0.3)
        self.bilinear = nn.Parameter(torch.eye(dim))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, u, v):
        score = ((self.emb(u) @ self.bilinear) * self.emb(v)).sum(-1) + self.bias
        return torch.sigmoid(score)  # <- fault


def sample_pairs(adj, n, gen):
    pos = adj.nonzero()
    neg = (torch.triu(~adj, diagonal=1)).nonzero()
    p = pos[torch.randint(0, len(pos), (n // 2,), generator=gen)]
    q = neg[torch.randint(0, len(neg), (n // 2,), generator=gen)]
    target = torch.cat([torch.ones(len(p)), torch.zeros(len(q))])
    return torch.cat([p, q]), target


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=600)
parser.add_argument("--dim", type=int, default=16)
args = parser.parse_args()

torch.manual_seed(1)
rng = torch.Generator().manual_seed(1)
adj = build_graph(150, 5, rng)
model = LinkScorer(150, args.dim)
bce = nn.BCEWithLogitsLoss()  # <- fault
optim = torch.optim.Adam(model.parameters(), lr=0.02)

for it in range(args.steps):
    pairs, target = sample_pairs(adj, 512, rng)
    optim.zero_grad()
    loss = bce(model(pairs[:, 0], pairs[:, 1]), target)  # <- fault
    loss.backward()
    optim.step()
    if it % 60 == 0 or it == args.steps - 1:
        print(f"step {it:4d}  bce {loss.item():.4f}")
