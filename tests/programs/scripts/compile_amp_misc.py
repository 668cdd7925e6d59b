import contextlib
import time
from typing import Optional

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.prune as prune
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


@torch.compile
def fused(x, y):
    return torch.sin(x) + torch.cos(y)


print(fused(torch.zeros(2), torch.zeros(2)))


class Block(nn.Module):
    def __init__(self, dim: int, use_checkpoint: bool = False):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.use_checkpoint = use_checkpoint

    def forward(self, x: torch.Tensor, mask: Optional[torch.Tensor] = None) -> torch.Tensor:
        h = self.norm(x)
        h = checkpoint(self.ff, h, use_reentrant=False) if self.use_checkpoint else self.ff(h)
        return x + (h if mask is None else h * mask)


model = nn.Sequential(Block(6), Block(6, use_checkpoint=True), nn.Linear(6, 2))
compiled = torch.compile(model[0], mode="default")
x, y = torch.randn(10, 6), torch.randint(0, 2, (10,))
with torch.no_grad():
    print(torch.allclose(compiled(x), model[0](x), atol=1e-6))
scaler = torch.amp.GradScaler("cuda", enabled=torch.cuda.is_available())
ctx = contextlib.nullcontext() if not torch.cuda.is_available() else torch.autocast("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
start = time.perf_counter()
for step in range(4):
    with ctx:
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    print(f"{step} {loss.item():.5f}")
assert time.perf_counter() > start
del start
with torch.autocast(device_type="cpu", dtype=torch.bfloat16, enabled=False):
    out = model[2](x)
print(out.dtype, model[2].bfloat16()(x.bfloat16()).dtype, model.float()[2].weight.dtype)
with profile(activities=[ProfilerActivity.CPU]) as prof:
    model(x)
print(len(prof.key_averages()) > 0)
torch.use_deterministic_algorithms(True)
print(torch.are_deterministic_algorithms_enabled())
torch.use_deterministic_algorithms(False)
torch.set_float32_matmul_precision("high")
torch.set_float32_matmul_precision("highest")
with torch.device("cpu"):
    print(torch.ones(1).device)
torch.manual_seed(3)
torch.cuda.manual_seed_all(3)
print(torch.rand(2), torch.testing.assert_close(torch.ones(1), torch.ones(1) + 1e-8))
best, patience = float("inf"), 0
for epoch in range(10):
    val = abs(3 - epoch) + loss.item() * 0
    if val < best:
        best, patience = val, 0
    else:
        patience += 1
        if patience >= 3:
            print("early stopping at", epoch)
            break
l1 = sum(p.abs().sum() for p in model.parameters())
l2 = sum((p**2).sum() for p in model.parameters())
(F.cross_entropy(model(x), y) + 1e-4 * l1 + 1e-4 * l2).backward()
print(l1, l2, max(p.grad.abs().max() for p in model.parameters()))
prune.l1_unstructured(model[2], "weight", amount=0.5)
print((model[2].weight == 0).sum())
