# Siamese nets: contrastive, triplet and InfoNCE losses; distillation; focal, mixup, smoothing; k-means, PCA.
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(9)
centres = torch.randn(4, 8) * 2


class TripletDataset(Dataset):
    def __init__(self, n):
        self.y = torch.arange(n) % 4
        self.x = centres[self.y] + torch.randn(n, 8)
        self.by_class = {c: (self.y == c).nonzero(as_tuple=True)[0] for c in range(4)}

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        c = self.y[i].item()
        same = self.by_class[c]
        positive = same[torch.randint(len(same), ())]
        other = self.by_class[(c + 1 + int(torch.randint(3, (1,)))) % 4]
        negative = other[torch.randint(len(other), (1,)).item()]
        return self.x[i], self.x[positive], self.x[negative], c


ds = TripletDataset(64)


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, a, b, same):
        d = F.pairwise_distance(a, b, keepdim=False)
        return torch.mean(same * d.pow(2) + (1 - same) * F.relu(self.margin - d).pow(2))


def batch_hard(e, y, margin=0.3):
    d = torch.cdist(e, e)
    same = y[:, None] == y[None]
    eye = torch.eye(len(y), dtype=torch.bool)
    pos = d.masked_fill(~same | eye, -1).max(1).values
    neg = d.masked_fill(same, float("inf")).min(1).values
    return F.relu(pos - neg + margin).mean()


def info_nce(a, b, tau=0.2):
    z = F.normalize(torch.cat([a, b]), dim=1)
    sim = z @ z.t() / tau
    sim.fill_diagonal_(float("-inf"))
    n = len(a)
    return F.cross_entropy(sim, torch.arange(2 * n).roll(n))


losses = {
    "contrastive": lambda a, p, n, y: (ContrastiveLoss()(a, p, 1.0) + ContrastiveLoss()(a, n, 0.0)) / 2,
    "triplet": lambda a, p, n, y: nn.TripletMarginLoss(margin=1.0, p=2, swap=True)(a, p, n),
    "cosine": lambda a, p, n, y: nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: 1 - F.cosine_similarity(x, y, dim=1), margin=0.5)(a, p, n),
    "hard": lambda a, p, n, y: batch_hard(a, y),
    "nce": lambda a, p, n, y: info_nce(a, p),
    "embed": lambda a, p, n, y: F.cosine_embedding_loss(torch.cat([a, a]), torch.cat([p, n]), torch.cat([torch.ones(len(a)), -torch.ones(len(a))])),
    "margin": lambda a, p, n, y: F.margin_ranking_loss(F.cosine_similarity(a, p), F.cosine_similarity(a, n), torch.ones(len(a)), margin=0.2),
    "hinge": lambda a, p, n, y: F.hinge_embedding_loss((a - n).norm(dim=1), -torch.ones(len(a)), margin=3.0),
}
for name, criterion in losses.items():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(8, 16), nn.PReLU(), nn.Linear(16, 2))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for epoch in range(2):
        for a, p, n, y in DataLoader(ds, 16, shuffle=True):
            loss = criterion(net(a), net(p), net(n), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    with torch.no_grad():
        e = net(ds.x)
        protos = torch.stack([e[ds.y == c].mean(0) for c in range(4)])
        acc = (torch.cdist(e, protos).argmin(1) == ds.y).float().mean()
    print(f"{name:12s} {loss.item():.4f} acc {acc:.2f}")

student, x, y = nn.Linear(8, 4), ds.x, ds.y
soft = F.softmax(nn.Linear(8, 4)(ds.x) / 4, dim=-1).detach()
opt = torch.optim.Adadelta(student.parameters())
for i in range(10):
    logits = student(x)
    kd = F.kl_div(F.log_softmax(logits / 4, dim=-1), soft, reduction="batchmean") * 16
    loss = 0.7 * kd + 0.3 * F.cross_entropy(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("kd", kd.item(), F.kl_div(soft.log(), soft.log(), log_target=True, reduction="sum").item())


def focal(logits, y, gamma=2.0, alpha=None):
    logp = F.log_softmax(logits, -1)
    ce = F.nll_loss(logp, y, weight=alpha, reduction="none")
    pt = logp.gather(1, y[:, None]).squeeze(1).exp()
    return ((1 - pt) ** gamma * ce).mean()


def mixup(x, y, a=0.4):
    lam = torch.distributions.Beta(a, a).sample()
    perm = torch.randperm(len(x))
    return lam * x + (1 - lam) * x[perm], y, y[perm], lam


print(focal(logits, y), focal(logits, y, alpha=torch.tensor([1.0, 2, 3, 4])))
mx, ya, yb, lam = mixup(x, y)
out = student(mx)
print((lam * F.cross_entropy(out, ya) + (1 - lam) * F.cross_entropy(out, yb)).item())
print(F.cross_entropy(out, lam * F.one_hot(ya, 4) + (1 - lam) * F.one_hot(yb, 4)).item(), F.cross_entropy(out, y, label_smoothing=0.2).item())
w = torch.distributions.Dirichlet(torch.ones(4)).sample((3,))
print(w.sum(1), F.binary_cross_entropy_with_logits(out, F.one_hot(y, 4).float(), pos_weight=torch.full((4,), 3.0)))
print(F.multi_margin_loss(out, y), F.multilabel_soft_margin_loss(out, F.one_hot(y, 4).float()), F.gaussian_nll_loss(out[:, 0], out[:, 1], out[:, 2].exp()), F.poisson_nll_loss(out, out.abs().detach()), F.huber_loss(out, out * 0.5), F.smooth_l1_loss(out, out * 0.1, beta=0.3))


c, a = ds.x[::16].clone(), torch.cdist(ds.x, ds.x[::16]).argmin(1)
c = c.scatter_reduce(0, a[:, None].expand_as(ds.x), ds.x, "mean", include_self=False)
print(torch.bincount(a, minlength=4), c.norm(dim=1), torch.corrcoef(ds.x.T)[0, :3])
s = torch.pca_lowrank(ds.x, q=3)[1]
print(s.shape, torch.allclose(s[0], torch.linalg.svdvals(ds.x - ds.x.mean(0))[0], rtol=1e-3))
