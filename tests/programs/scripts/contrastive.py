import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class Encoder(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16))
        self.g = nn.Sequential(nn.Linear(16, 16, bias=False), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, dim))

    def forward(self, x):
        feature = torch.flatten(self.f(x), start_dim=1)
        return F.normalize(feature, dim=-1), F.normalize(self.g(feature), dim=-1)


def info_nce_loss(features, n_views=2, temperature=0.07):
    n = features.shape[0] // n_views
    labels = torch.cat([torch.arange(n) for _ in range(n_views)], dim=0)
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    similarity_matrix = torch.matmul(features, features.T)
    mask = torch.eye(labels.shape[0], dtype=torch.bool)
    labels = labels[~mask].view(labels.shape[0], -1)
    similarity_matrix = similarity_matrix[~mask].view(similarity_matrix.shape[0], -1)
    positives = similarity_matrix[labels.bool()].view(labels.shape[0], -1)
    negatives = similarity_matrix[~labels.bool()].view(similarity_matrix.shape[0], -1)
    logits = torch.cat([positives, negatives], dim=1)
    return logits / temperature, torch.zeros(logits.shape[0], dtype=torch.long)


net = Encoder()
queue = F.normalize(torch.randn(8, 32), dim=0)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-6)
for step in range(6):
    x = torch.randn(16, 12)
    v1, v2 = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
    _, z = net(torch.cat([v1, v2], dim=0))
    logits, labels = info_nce_loss(z)
    loss = F.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    z1, z2 = z.detach().chunk(2)
    l_pos = torch.einsum("nc,nc->n", [z1, z2]).unsqueeze(-1)
    l_neg = torch.einsum("nc,ck->nk", z1, queue.clone().detach())
    queue = torch.roll(queue, 16, dims=1)
    queue[:, :16] = z2.T
    top1 = (torch.cat([l_pos, l_neg], 1).argmax(1) == 0).float().mean()
    print(f"{step} loss {loss.item():.4f} top1 {top1:.4f}")
anchor, pos, neg = net(x)[1], net(v1)[1], net(v2.flip(0))[1]
print(nn.TripletMarginLoss(margin=0.5)(anchor, pos, neg))
print(nn.CosineEmbeddingLoss(margin=0.2)(anchor, neg, torch.ones(16) * -1))
print(F.pairwise_distance(anchor, pos).mean(), torch.cdist(anchor, neg).shape, torch.pdist(anchor[:4]).detach())
print(nn.MarginRankingLoss()(l_pos.squeeze(), l_neg.mean(1), torch.ones(16)), nn.HuberLoss()(anchor, neg))
scores = torch.einsum("bhid,bhjd->bhij", torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4))
causal = torch.ones(3, 3).triu(1).bool()
print(scores.masked_fill(causal, -torch.inf).softmax(-1))
