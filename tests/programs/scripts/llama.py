# A decoder in the manner of LLaMA: RMSNorm, complex rotary positions, grouped queries, SwiGLU, a cache of keys and values.
import inspect
import math
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Optional, Tuple

import torch
import torch.nn as nn
from torch import Tensor
from torch.nn import functional as F
from torch.utils.data.dataloader import default_collate

torch.manual_seed(1337)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
device_type = "cuda" if "cuda" in str(device) else "cpu"
ptdtype = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}["float32"]
ctx = nullcontext() if device_type == "cpu" else torch.amp.autocast(device_type=device_type, dtype=ptdtype)
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
torch.set_float32_matmul_precision("high")


def frequencies(hd: int, end: int, theta: float = 10000.0) -> Tensor:
    rates = 1.0 / theta ** (torch.arange(0, hd, 2, dtype=torch.int64).float() / hd)
    angles = torch.outer(torch.arange(end, dtype=torch.float), rates)
    return torch.polar(torch.ones_like(angles), angles)  # complex64, (end, hd / 2)


def rotated(x: Tensor, turns: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns[None, :, None]).flatten(3).type_as(x)


def repeat_kv(x: Tensor, n_rep: int) -> Tensor:
    bs, slen, n_kv, hd = x.shape
    return (
        x
        if n_rep == 1
        else x[:, :, :, None, :].expand(bs, slen, n_kv, n_rep, hd).reshape(bs, slen, n_kv * n_rep, hd)
    )


@dataclass
class Args:
    dim: int = 32
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: Optional[int] = 2
    vocab: int = 50
    max_seq: int = 16


class Attention(nn.Module):
    def __init__(self, a: Args):
        super().__init__()
        self.nh, self.nkv, self.hd = a.n_heads, a.n_kv_heads, a.dim // a.n_heads
        self.wq = nn.Linear(a.dim, self.nh * self.hd, bias=False)
        self.wk = nn.Linear(a.dim, self.nkv * self.hd, bias=False)
        self.wv = nn.Linear(a.dim, self.nkv * self.hd, bias=False)
        self.wo = nn.Linear(self.nh * self.hd, a.dim, bias=False)
        self.register_buffer("turns", frequencies(self.hd, a.max_seq), persistent=False)
        self.cache: Optional[Tuple[Tensor, Tensor]] = None

    def forward(self, x, pos=0, use_cache=False):
        B, T, _ = x.shape
        q, k, v = (w(x).view(B, T, -1, self.hd) for w in (self.wq, self.wk, self.wv))
        q, k = (rotated(each, self.turns[pos : pos + T]) for each in (q, k))
        if use_cache:
            if self.cache is not None:
                k, v = torch.cat([self.cache[0], k], 1), torch.cat([self.cache[1], v], 1)
            self.cache = (k, v)
        k, v = repeat_kv(k, self.nh // self.nkv), repeat_kv(v, self.nh // self.nkv)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        mask = torch.full((T, k.size(2)), float("-inf")).triu(diagonal=1 + pos) if T > 1 else None
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.wo(y.transpose(1, 2).contiguous().view(B, T, -1))


class SwiGLU(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.w1, self.w2, self.w3 = nn.Linear(d, h, False), nn.Linear(h, d, False), nn.Linear(d, h, False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Llama(nn.Module):
    def __init__(self, a: Args):
        super().__init__()
        self.a = a
        self.tok = nn.Embedding(a.vocab, a.dim)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                dict(
                    n1=nn.RMSNorm(a.dim), attn=Attention(a), n2=nn.RMSNorm(a.dim, eps=1e-6), ff=SwiGLU(a.dim, 64)
                )
            )
            for _ in range(a.n_layers)
        )
        self.norm, self.out = nn.RMSNorm(a.dim), nn.Linear(a.dim, a.vocab, bias=False)
        self.tok.weight = self.out.weight
        self.apply(self._init)
        for pn, p in self.named_parameters():
            if pn.endswith("wo.weight"):
                nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * a.n_layers))
        print("number of parameters: %.2fK" % (sum(p.numel() for p in self.parameters()) / 1e3,))

    def _init(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            torch.nn.init.normal_(m.weight, mean=0.0, std=0.02)

    def forward(self, idx, targets=None, pos=0, cache=False):
        x = self.tok(idx)
        for l in self.layers:
            x = x + l["attn"](l["n1"](x), pos, cache)
            x = x + l["ff"](l["n2"](x))
        logits = self.out(self.norm(x))
        loss = (
            None
            if targets is None
            else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        )
        return logits, loss

    def configure(self, wd, lr, betas):
        pd = {n: p for n, p in self.named_parameters() if p.requires_grad}
        groups = [
            {"params": [p for p in pd.values() if p.dim() >= 2], "weight_decay": wd},
            {"params": [p for p in pd.values() if p.dim() < 2], "weight_decay": 0.0},
        ]
        fused = "fused" in inspect.signature(torch.optim.AdamW).parameters
        return torch.optim.AdamW(groups, lr=lr, betas=betas, **(dict(fused=True) if fused else {}))

    @torch.no_grad()
    def generate(self, idx, n, temperature=1.0, top_k=None):
        for l in self.layers:
            l["attn"].cache = None
        pos, cur = 0, idx
        for _ in range(n):
            logits, _ = self(cur, pos=pos, cache=True)
            pos += cur.size(1)
            logits = logits[:, -1, :] / temperature
            if top_k is not None:
                v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                logits[logits < v[:, [-1]]] = -float("Inf")
            cur = torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)
            idx = torch.cat((idx, cur), dim=1)
        return idx


model = Llama(Args()).to(device)
print(model.layers[0]["attn"].turns[:2])
opt = model.configure(0.1, 1e-3, (0.9, 0.95))
scaler = torch.amp.GradScaler("cpu", enabled=False)
data = torch.randint(50, (200,))
for it in range(5):
    ix = torch.randint(len(data) - 9, (4,))
    x, yb = torch.stack([data[i : i + 8] for i in ix]), torch.stack([data[i + 1 : i + 9] for i in ix])
    with ctx:
        _, loss = model(x, yb)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    opt.zero_grad(set_to_none=True)
    print(f"iter {it}: loss {loss.item():.4f}")
model.eval()
print(model.generate(torch.zeros((1, 1), dtype=torch.long), 8, top_k=5).tolist())
full, _ = model(x[:1])
for l in model.layers:
    l["attn"].cache = None
parts = [model(x[:1, i : i + 1], pos=i, cache=True)[0] for i in range(8)]
print(torch.allclose(full, torch.cat(parts, 1), atol=1e-5))
print(default_collate([{"a": 1, "b": [torch.ones(2), 2.0]}, {"a": 3, "b": [torch.zeros(2), 4.0]}]), sum(b.numel() for b in model.buffers()))
del model  # after some steps of Adam an element or two differ by 1e-5
torch.backends.cuda.matmul.allow_tf32 = False
torch.set_float32_matmul_precision("highest")
