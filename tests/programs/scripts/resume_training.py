# Accumulation, clipping, schedules, early stopping; a checkpoint of everything, and the same losses after resuming.
import copy
import io
import os
import random
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, RandomSampler, Sampler, SubsetRandomSampler, TensorDataset, WeightedRandomSampler, BatchSampler


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


class EarlyStopping:
    def __init__(self, patience=2, min_delta=0.0):
        self.patience, self.min_delta, self.best, self.counter, self.best_state = patience, min_delta, float("inf"), 0, None

    def __call__(self, value, model):
        if value < self.best - self.min_delta:
            self.best, self.counter, self.best_state = value, 0, copy.deepcopy(model.state_dict())
        else:
            self.counter += 1
        return self.counter >= self.patience


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
stopper, plateau = EarlyStopping(2, 0.01), lr_scheduler.ReduceLROnPlateau(opt2, factor=0.5, patience=0, threshold=0.05)
for e in range(8):
    value = sum(epoch(model2, opt2, sched2)[0]) / 6
    plateau.step(value)
    if stopper(value, model2):
        break
print("stopped", e, f"{stopper.best:.4f}", plateau.num_bad_epochs)
model2.load_state_dict(stopper.best_state)
missing = model2.load_state_dict({k: v for k, v in final.items() if not k.startswith("fc")} | {"extra": torch.ones(1)}, strict=False)
print(missing)
try:
    model2.load_state_dict({"fc.weight": torch.zeros(2, 2)})
except RuntimeError as err:
    print(str(err)[:400])
buf = io.BytesIO()
torch.save(model2, buf)
buf.seek(0)
again = torch.load(buf, weights_only=False)
print(type(again).__name__, again.steps == model2.steps, opt)


class BucketSampler(Sampler):
    def __init__(self, lengths, size):
        self.lengths, self.size = lengths, size

    def __iter__(self):
        order = sorted(range(len(self.lengths)), key=self.lengths.__getitem__)
        chunks = [order[i : i + self.size] for i in range(0, len(order), self.size)]
        for k in torch.randperm(len(chunks)).tolist():
            yield chunks[k]

    def __len__(self):
        return -(-len(self.lengths) // self.size)


seqs = [torch.arange(1, 1 + n) for n in (3, 7, 2, 5, 1, 6, 4)]


def collate(batch):
    lengths = torch.tensor([len(b) for b in batch])
    return nn.utils.rnn.pad_sequence(batch, batch_first=True, padding_value=-1), lengths


torch.manual_seed(0)
for padded, lengths in DataLoader(seqs, batch_sampler=BucketSampler([len(s) for s in seqs], 3), collate_fn=collate):
    print(padded.shape, lengths.tolist(), (padded >= 0).sum(1).equal(lengths))
for workers in (0, 2):
    torch.manual_seed(1)
    dl = DataLoader(seqs, batch_size=2, shuffle=True, num_workers=workers, collate_fn=collate, persistent_workers=workers > 0, multiprocessing_context="fork" if workers else None, worker_init_fn=lambda i: torch.manual_seed(i))
    print([b[1].tolist() for b in dl], len(dl))
print(list(BatchSampler(SubsetRandomSampler([4, 5, 6, 7]), 3, drop_last=False)), list(RandomSampler(range(5), num_samples=7, replacement=True)))
torch.use_deterministic_algorithms(False)
del folder, file
