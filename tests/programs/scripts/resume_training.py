# Accumulation, clipping, schedules; a checkpoint of everything, and the same losses after resuming.
import io
import os
import random
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(6, momentum=None)
        self.gru = nn.GRU(6, 12, num_layers=2, dropout=0.2, batch_first=True)
        self.fc = nn.Linear(12, 3)
        self.steps = 0
        self.register_buffer("seen", torch.zeros((), dtype=torch.long), persistent=True)
        self.register_buffer("scratch", torch.ones(2), persistent=False)

    def forward(self, x):
        x = self.bn(x.transpose(1, 2)).transpose(1, 2)
        if self.training:
            self.seen += x.size(0)
            self.steps += 1
        return self.fc(F.dropout(self.gru(x)[0][:, -1], 0.3, self.training))

    def get_extra_state(self):
        return {"steps": self.steps}

    def set_extra_state(self, state):
        self.steps = state["steps"]


set_seed(42)
X = torch.randn(96, 5, 6)
Y = (X[:, :, 0].sum(1) > 0).long() + (X[:, :, 1].sum(1) > 1).long()
loader_rng = torch.Generator().manual_seed(7)
weights = 1.0 / torch.bincount(Y)[Y].double()
sampler = WeightedRandomSampler(weights, 96, replacement=True, generator=loader_rng)
loader = DataLoader(TensorDataset(X, Y), batch_size=16, sampler=sampler)


def build():
    model = Net()
    opt = torch.optim.NAdam(model.parameters(), lr=5e-3, weight_decay=1e-3, decoupled_weight_decay=True)
    warm = lr_scheduler.LinearLR(opt, 0.2, total_iters=4)
    cosine = lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=6, T_mult=2, eta_min=1e-4)
    return model, opt, lr_scheduler.SequentialLR(opt, [warm, cosine], milestones=[4])


def epoch(model, opt, sched, accumulate=2):
    model.train()
    losses, norms = [], []
    opt.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y) / accumulate
        loss.backward()
        losses.append(loss.item() * accumulate)
        if (i + 1) % accumulate == 0:
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5, norm_type=2.0, error_if_nonfinite=True).item())
            opt.step()
            opt.zero_grad()
            sched.step()
    return losses, norms


def save(path, model, opt, sched, epoch_no):
    torch.save(
        {
            "epoch": epoch_no,
            "model": model.state_dict(),
            "opt": opt.state_dict(),
            "sched": sched.state_dict(),
            "torch_rng": torch.get_rng_state(),
            "loader_rng": loader_rng.get_state(),
            "numpy_rng": np.random.get_state(),
            "python_rng": random.getstate(),
        },
        path,
    )


model, opt, sched = build()
for e in range(2):
    losses, norms = epoch(model, opt, sched)
    print(e, f"{sum(losses) / len(losses):.4f}", [f"{n:.3f}" for n in norms], f"{sched.get_last_lr()[0]:.6f}")
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "ck.pt")
    save(file, model, opt, sched, 2)
    first = epoch(model, opt, sched)[0] + epoch(model, opt, sched)[0]
    lr_first = sched.get_last_lr()
    final = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in model.state_dict().items()}
    ck = torch.load(file, map_location="cpu", weights_only=False)
    try:
        torch.load(file, weights_only=True)
    except Exception as err:
        print(type(err).__name__)
model2, opt2, sched2 = build()
print(model2.load_state_dict(ck["model"]), model2.steps, model2.seen)
opt2.load_state_dict(ck["opt"])
sched2.load_state_dict(ck["sched"])
torch.set_rng_state(ck["torch_rng"])
loader_rng.set_state(ck["loader_rng"])
random.setstate(ck["python_rng"])
np.random.set_state(ck["numpy_rng"])
second = epoch(model2, opt2, sched2)[0] + epoch(model2, opt2, sched2)[0]
print(first == second, lr_first == sched2.get_last_lr(), sorted(ck))
print(all(torch.equal(v, model2.state_dict()[k]) for k, v in final.items() if k != "_extra_state"), final["_extra_state"])
print([k for k in final if "weight" not in k and "bias" not in k])
plateau = lr_scheduler.ReduceLROnPlateau(opt2, factor=0.5, patience=0, threshold=0.05)
for e in range(4):
    plateau.step(sum(epoch(model2, opt2, sched2)[0]) / 6)
print(plateau.num_bad_epochs, plateau.best)
partial = {k: v for k, v in final.items() if not k.startswith("fc")} | {"extra": torch.ones(1)}
print(model2.load_state_dict(partial, strict=False))
for wrong in (partial, {"fc.weight": torch.zeros(2, 2)}):
    try:
        model2.load_state_dict(wrong)
    except RuntimeError as err:
        print(str(err)[:600])
buf = io.BytesIO()
torch.save(model2, buf)
buf.seek(0)
again = torch.load(buf, weights_only=False)
print(type(again).__name__, again.steps == model2.steps, opt)


torch.use_deterministic_algorithms(False)
del folder, file
