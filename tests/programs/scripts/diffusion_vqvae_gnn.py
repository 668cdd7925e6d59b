# DDPM on points, a VQ-VAE with straight-through codes, a graph network with scatter, a mixture of experts.
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn import init

torch.manual_seed(0)
T = 40
betas = torch.linspace(1e-4, 0.05, T)
alphas = 1.0 - betas
abar = torch.cumprod(alphas, dim=0)
abar_prev = F.pad(abar[:-1], (1, 0), value=1.0)
posterior_variance = betas * (1.0 - abar_prev) / (1.0 - abar)


def extract(a, t, shape):
    return a.gather(-1, t).reshape(t.shape[0], *((1,) * (len(shape) - 1)))


class SinusoidalPositionEmbeddings(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, time):
        half = self.dim // 2
        e = torch.exp(torch.arange(half, device=time.device) * -(math.log(10000) / (half - 1)))
        e = time[:, None] * e[None, :]
        return torch.cat((e.sin(), e.cos()), dim=-1)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(SinusoidalPositionEmbeddings(16), nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 64))
        self.inp, self.mid, self.out = nn.Linear(2, 32), nn.Linear(32, 32), nn.Linear(32, 2)

    def forward(self, x, t):
        scale, shift = self.time(t).chunk(2, dim=-1)
        h = F.mish(self.inp(x)) * (1 + scale) + shift
        return self.out(F.mish(self.mid(h)))


def ring(n):
    a = torch.rand(n) * 2 * torch.pi
    return torch.stack([a.cos(), a.sin()], 1) + 0.05 * torch.randn(n, 2)


net = Denoiser()
ema = {k: v.detach().clone() for k, v in net.named_parameters()}
opt = torch.optim.RAdam(net.parameters(), lr=3e-3)
for step in range(40):
    x0, t = ring(64), torch.randint(0, T, (64,)).long()
    noise = torch.randn_like(x0)
    xt = extract(abar.sqrt(), t, x0.shape) * x0 + extract((1 - abar).sqrt(), t, x0.shape) * noise
    loss = F.smooth_l1_loss(net(xt, t), noise)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for k, v in net.named_parameters():
            ema[k].mul_(0.95).add_(v, alpha=0.05)
    if step % 13 == 0:
        print("ddpm", step, f"{loss.item():.4f}")
net.load_state_dict(ema)


@torch.inference_mode()
def sample(n):
    x = torch.randn(n, 2)
    for i in reversed(range(T)):
        t = torch.full((n,), i, dtype=torch.long)
        mean = (1.0 / alphas[i]).sqrt() * (x - betas[i] / (1 - abar[i]).sqrt() * net(x, t))
        x = mean if i == 0 else mean + posterior_variance[i].sqrt() * torch.randn_like(x)
    return x


pts = sample(32)
print(pts.is_inference(), pts.norm(dim=1).mean(), pts.mean(0))


class VectorQuantizer(nn.Module):
    def __init__(self, n, d, cost=0.25, decay=0.9):
        super().__init__()
        self.n, self.cost, self.decay = n, cost, decay
        self.register_buffer("codes", torch.randn(n, d) * 0.5)
        self.register_buffer("size", torch.zeros(n))
        self.register_buffer("total", self.codes.clone())

    def forward(self, z):
        z = z.permute(0, 2, 3, 1).contiguous()
        flat = z.view(-1, z.shape[-1])
        d = flat.pow(2).sum(1, keepdim=True) + self.codes.pow(2).sum(1) - 2 * flat @ self.codes.t()
        idx = d.argmin(1).unsqueeze(1)
        onehot = torch.zeros(idx.shape[0], self.n).scatter_(1, idx, 1)
        q = (onehot @ self.codes).view(z.shape)
        if self.training:
            self.size = self.size * self.decay + (1 - self.decay) * onehot.sum(0)
            n = self.size.sum()
            self.size = (self.size + 1e-5) / (n + self.n * 1e-5) * n
            self.total = self.total * self.decay + (1 - self.decay) * (onehot.t() @ flat.detach())
            self.codes = self.total / self.size.unsqueeze(1)
        loss = self.cost * F.mse_loss(q.detach(), z)
        q = z + (q - z).detach()
        p = onehot.mean(0)
        return loss, q.permute(0, 3, 1, 2), torch.exp(-torch.sum(p * torch.log(p + 1e-10)))


enc = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.ELU(), nn.Conv2d(8, 4, 3, padding=1))
dec = nn.Sequential(nn.Conv2d(4, 16, 3, padding=1), nn.PixelShuffle(2), nn.Hardswish(), nn.Conv2d(4, 1, 3, padding=1))
vq = VectorQuantizer(8, 4)
params = [*enc.parameters(), *dec.parameters()]
opt = torch.optim.Adam(params, lr=1e-2, fused=False)
images = torch.sin(torch.arange(8.0)[None, :] * torch.rand(16, 1, 1, 1) * 3 + torch.arange(8.0)[:, None])
for step in range(12):
    vq_loss, q, ppl = vq(enc(images))
    rec = F.mse_loss(dec(q), images) / images.var()
    opt.zero_grad(set_to_none=False)
    (rec + vq_loss).backward()
    opt.step()
    if step % 4 == 3:
        print("vq", step, f"{rec.item():.4f} {vq_loss.item():.4f} {ppl.item():.3f}")


class GATConv(nn.Module):
    def __init__(self, i, o, heads=2):
        super().__init__()
        self.lin, self.heads, self.o = nn.Linear(i, o * heads, bias=False), heads, o
        self.a = nn.Parameter(init.xavier_uniform_(torch.empty(2, heads, o), gain=1.414))

    def forward(self, x, edge_index):
        src, dst = edge_index
        h = self.lin(x).view(-1, self.heads, self.o)
        e = F.leaky_relu((h * self.a[0]).sum(-1)[src] + (h * self.a[1]).sum(-1)[dst], 0.2)
        top = torch.full((x.size(0), self.heads), float("-inf")).scatter_reduce(0, dst[:, None].expand_as(e), e, reduce="amax")
        w = (e - top[dst]).exp()
        z = torch.zeros(x.size(0), self.heads).scatter_add(0, dst[:, None].expand_as(w), w)
        w = w / z[dst].clamp(min=1e-16)
        return torch.zeros_like(h).index_put((dst,), w[..., None] * h[src], accumulate=True).flatten(1)


n = 30
community = torch.arange(n) % 3
prob = torch.where(community[:, None] == community[None], 0.5, 0.05)
adj = torch.bernoulli(prob).triu(1)
adj = adj + adj.T
edge_index = adj.nonzero().t().contiguous()
x = torch.eye(n)
train_mask = torch.zeros(n, dtype=torch.bool)
train_mask[:9] = True
c1, c2 = GATConv(n, 8), GATConv(16, 3)
opt = torch.optim.Adam([*c1.parameters(), *c2.parameters()], lr=0.02, weight_decay=5e-4)
for epoch in range(15):
    h = F.dropout(F.elu(c1(x, edge_index)), 0.3, training=True)
    loss = F.cross_entropy(c2(h, edge_index)[train_mask, :3], community[train_mask])
    opt.zero_grad()
    loss.backward()
    opt.step()
print(edge_index.shape, f"{loss.item():.4f}", torch.zeros(n).index_add(0, edge_index[1], torch.ones(edge_index.size(1))).sum())


class MoE(nn.Module):
    def __init__(self, d, n, k=2):
        super().__init__()
        self.gate, self.k = nn.Linear(d, n, bias=False), k
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d)) for _ in range(n)])

    def forward(self, x):
        flat = x.view(-1, x.size(-1))
        probs = self.gate(flat).softmax(-1)
        w, picked = probs.topk(self.k, dim=-1)
        w = w / w.sum(-1, keepdim=True)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            rows, slot = torch.where(picked == i)
            if rows.numel():
                out.index_add_(0, rows, expert(flat[rows]) * w[rows, slot, None])
        load = F.one_hot(picked, len(self.experts)).float().mean((0, 1))
        return out.view_as(x), len(self.experts) * (load * probs.mean(0)).sum()


moe = MoE(8, 4)
tokens = torch.randn(2, 6, 8)
out, aux = moe(tokens)
(out.pow(2).mean() + 0.01 * aux).backward()
print(out.sum(), aux, moe.gate.weight.grad.norm(), [e[0].weight.grad is not None for e in moe.experts])
hard = F.gumbel_softmax(torch.randn(3, 4), tau=0.5, hard=True)
print(hard.sum(-1), hard.shape)
