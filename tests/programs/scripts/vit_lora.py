# A small vision transformer, then low-rank adapters on its frozen weights; merging; parametrize.
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize
from torch.nn.init import trunc_normal_

torch.manual_seed(0)


class PatchEmbed(nn.Module):
    def __init__(self, img_size=12, patch=4, chans=3, dim=32):
        super().__init__()
        self.n = (img_size // patch) ** 2
        self.proj = nn.Conv2d(chans, dim, kernel_size=patch, stride=patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, qkv_bias=False):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = (q @ k.transpose(-2, -1)) * self.scale
        attn = attn.softmax(dim=-1)
        self.last = attn.detach()
        return self.proj((attn @ v).transpose(1, 2).reshape(B, N, C))


class DropPath(nn.Module):
    def __init__(self, p=0.0):
        super().__init__()
        self.p = p

    def forward(self, x):
        if self.p == 0.0 or not self.training:
            return x
        keep = 1 - self.p
        mask = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)
        return x * mask.div_(keep)

    def extra_repr(self):
        return f"p={self.p}"


class Block(nn.Module):
    def __init__(self, dim, drop_path):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
        self.attn = Attention(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(approximate="tanh"), nn.Linear(2 * dim, dim))
        self.drop_path = DropPath(drop_path) if drop_path > 0.0 else nn.Identity()

    def forward(self, x):
        x = x + self.drop_path(self.attn(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class ViT(nn.Module):
    def __init__(self, dim=32, depth=3, classes=4):
        super().__init__()
        self.patch_embed = PatchEmbed(dim=dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, self.patch_embed.n + 1, dim))
        rates = [x.item() for x in torch.linspace(0, 0.1, depth)]
        self.blocks = nn.ModuleList([Block(dim, r) for r in rates])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)
        trunc_normal_(self.pos_embed, std=0.02)
        trunc_normal_(self.cls_token, std=0.02)
        self.apply(self._init_weights)

    def _init_weights(self, m):
        if isinstance(m, nn.Linear):
            trunc_normal_(m.weight, std=0.02)
            if isinstance(m, nn.Linear) and m.bias is not None:
                nn.init.zeros_(m.bias)

    def forward(self, x):
        x = self.patch_embed(x)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
        for blk in self.blocks:
            x = blk(x)
        return self.head(self.norm(x)[:, 0])


def data(n):
    y = torch.randint(4, (n,))
    x = torch.randn(n, 3, 12, 12) * 0.5
    for k in range(4):
        x[y == k, k % 3, (k // 2) * 6 : (k // 2) * 6 + 6] += 1.0
    return x, y


model = ViT()
print(model.blocks[2])
decay = [p for n, p in model.named_parameters() if p.ndim > 1]
no_decay = [p for n, p in model.named_parameters() if p.ndim <= 1]
opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": no_decay, "weight_decay": 0.0}], lr=3e-3)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min((s + 1) / 5, 0.5 * (1 + math.cos(math.pi * s / 15))))
for step in range(12):
    x, y = data(32)
    loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step % 4 == 3:
        print(step, f"{loss.item():.4f} {sched.get_last_lr()[0]:.6f}")
result = torch.eye(10)
for blk in model.blocks:
    a = blk.attn.last.mean(1) + torch.eye(10)
    result = a / a.sum(-1, keepdim=True) @ result
print("rollout", result[0, 0, 1:].view(3, 3))


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, r=2, alpha=4.0):
        super().__init__()
        self.base = base
        base.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.empty(r, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.scaling = alpha / r

    def forward(self, x):
        return self.base(x) + (x @ self.lora_A.T @ self.lora_B.T) * self.scaling

    @torch.no_grad()
    def merge(self):
        self.base.weight += self.lora_B @ self.lora_A * self.scaling
        return self.base


model.requires_grad_(False)
for name, module in list(model.named_modules()):
    for child_name, child in list(module.named_children()):
        if isinstance(child, nn.Linear) and child_name in ("qkv", "proj"):
            setattr(module, child_name, LoRALinear(child))
trainable = {n for n, p in model.named_parameters() if p.requires_grad}
print(len(trainable), sum(p.numel() for p in model.parameters() if p.requires_grad), sorted(trainable)[:2])
opt = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-2)
for step in range(4):
    x, y = data(32)
    loss = F.cross_entropy(model(x), (y + 1) % 4)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("lora", f"{loss.item():.4f}")
model.eval()
before = model(x)
for m in model.modules():
    for n, c in list(m.named_children()):
        if isinstance(c, LoRALinear):
            setattr(m, n, c.merge())
print(torch.allclose(before, model(x), atol=1e-5), len(model.state_dict()))


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)

    def right_inverse(self, A):
        return A.triu()


class MatrixExponential(nn.Module):
    def forward(self, X):
        return torch.matrix_exp(X)


lay = nn.Linear(3, 3)
parametrize.register_parametrization(lay, "weight", Symmetric())
lay.weight = torch.arange(9.0).view(3, 3)
print(lay.weight, lay.parametrizations.weight.original, lay, parametrize.is_parametrized(lay))
with parametrize.cached():
    print(lay.weight is lay.weight, sorted(n for n, _ in lay.named_parameters()))
parametrize.register_parametrization(lay, "weight", MatrixExponential())
print(torch.linalg.eigvalsh(lay.weight * 0 + torch.eye(3)).sum(), len(lay.parametrizations.weight))
parametrize.remove_parametrizations(lay, "weight", leave_parametrized=False)
print(lay, isinstance(lay.weight, nn.Parameter))
orthogonal = nn.utils.parametrizations.orthogonal(nn.Linear(4, 3), orthogonal_map="householder")
print(torch.allclose(orthogonal.weight @ orthogonal.weight.T, torch.eye(3), atol=1e-5))
wn = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3), dim=0)
print(wn.parametrizations.weight.original0.shape, sorted(wn.state_dict()))
sn = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3), n_power_iterations=3)
for _ in range(20):
    w = sn.weight
print(torch.linalg.matrix_norm(w, 2), sorted(sn.state_dict()))
