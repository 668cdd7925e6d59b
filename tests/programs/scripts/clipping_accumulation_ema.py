import copy

import torch
import torch.nn as nn
from torch.nn.utils import clip_grad_norm_, parameters_to_vector, vector_to_parameters
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(0)


class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = copy.deepcopy(model).eval()
        for p in self.shadow.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)
        for s, b in zip(self.shadow.buffers(), model.buffers()):
            s.copy_(b)


model = nn.Sequential(nn.Linear(6, 16, bias=False), nn.BatchNorm1d(16), nn.SiLU(), nn.Linear(16, 1))
ema = EMA(model, 0.9)
swa = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.05)
x, y = torch.randn(64, 6), torch.randn(64, 1)
accumulation_steps = 4
model.zero_grad()
for i, (inputs, labels) in enumerate(zip(x.split(4), y.split(4))):
    loss = nn.functional.mse_loss(model(inputs), labels) / accumulation_steps
    loss.backward()
    if (i + 1) % accumulation_steps == 0:
        total_norm = clip_grad_norm_(model.parameters(), max_norm=1.0)
        new_norm = torch.norm(torch.stack([p.grad.detach().norm() for p in model.parameters()]))
        optimizer.step()
        optimizer.zero_grad()
        ema.update(model)
        swa.update_parameters(model)
        print(f"{i} norm {total_norm:.4f} -> {new_norm:.4f} grads {[p.grad for p in model.parameters()][:1]}")
vec = parameters_to_vector(model.parameters())
print(vec.shape, vec.norm())
vector_to_parameters(vec * 0.5, model.parameters())
print(parameters_to_vector(model.parameters()).norm() / vec.norm())
a, b = parameters_to_vector(ema.shadow.parameters()), parameters_to_vector(swa.parameters())
print(a.norm(), b.norm(), swa.n_averaged)
try:
    clip_grad_norm_([nn.Parameter(torch.ones(1) * float("nan"))], 1.0, error_if_nonfinite=True)
    p = nn.Parameter(torch.ones(1))
    p.grad = torch.tensor([float("inf")])
    clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
except RuntimeError as error:
    print(str(error)[:50])
