# cause: learning-rate-too-high
# symptom: the loss jumps to 40 and more, then stays noisy around and above ln 2 = 0.69 (a guess); accuracy jumps between 0.3 and 0.85
"""Is a bracket string balanced? Small transformer encoder."""
import random
from dataclasses import dataclass
import torch
from torch import nn


@dataclass
class Config:
    length: int = 10
    dim: int = 32
    heads: int = 4
    layers: int = 2
    batch: int = 64
    steps: int = 160
    lr: float = 0.3  # <- fault


def balanced(s):
    depth = 0
    for ch in s:
        depth += 1 if ch == 1 else -1
        if depth < 0:
            return False
    return depth == 0


def make_strings(n, length, rnd):
    good, bad = [], []
    while len(good) < n // 2 or len(bad) < n // 2:
        s = [0] * (length // 2) + [1] * (length // 2)
        rnd.shuffle(s)
        (good if balanced(s) else bad).append(s)
    y = [1] * (n // 2) + [0] * (n // 2)
    return torch.tensor(good[:n // 2] + bad[:n // 2]), torch.tensor(y)


class BracketNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tok = nn.Embedding(2, cfg.dim)
        self.pos = nn.Parameter(0.1 * torch.randn(cfg.length, cfg.dim))
        layer = nn.TransformerEncoderLayer(cfg.dim, cfg.heads, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, cfg.layers, enable_nested_tensor=False)
        self.cls = nn.Linear(cfg.dim, 2)

    def forward(self, s):
        return self.cls(self.enc(self.tok(s) + self.pos).mean(1))


def main(cfg=Config()):
    torch.manual_seed(0)
    x, y = make_strings(2000, cfg.length, random.Random(0))
    net = BracketNet(cfg)
    opt = torch.optim.AdamW(net.parameters(), lr=cfg.lr, weight_decay=0.01)  # <- fault
    for step in range(cfg.steps):
        idx = torch.randint(0, len(x), (cfg.batch,))
        logits = net(x[idx])
        loss = nn.functional.cross_entropy(logits, y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0 or step == cfg.steps - 1:
            acc = (logits.argmax(-1) == y[idx]).float().mean().item()
            print(f"{step:4d} loss {loss.item():.4f} acc {acc:.3f} (lr {opt.param_groups[0]['lr']})")


main()
