# What autograd saves, hooks on it, packing to disk, and checkpoints.
import os
import tempfile
import uuid

import torch
import torch.nn as nn
from torch.autograd.graph import saved_tensors_hooks, save_on_cpu
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

torch.manual_seed(0)
x = torch.randn(5, requires_grad=True)
y = x.pow(2)
print(x.equal(y.grad_fn._saved_self), x is y.grad_fn._saved_self)
y = x.exp()
print(y.equal(y.grad_fn._saved_result), y is y.grad_fn._saved_result)


def f(x):
    return x * x


x = torch.randn(5, requires_grad=True)
with saved_tensors_hooks(lambda t: t * 4, lambda t: t):
    y = f(x)
(gradient,) = torch.autograd.grad(y.sum(), x)
print(torch.allclose(gradient, 8 * x))
saved = []
with saved_tensors_hooks(lambda t: (saved.append(tuple(t.shape)), t)[1], lambda t: t):
    net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2), nn.LogSoftmax(-1))
    out = net(torch.randn(6, 4))
print(len(saved), sorted(saved)[1:])
saved.clear()
out.mean().backward()
folder = [tempfile.mkdtemp()]


class SelfDeletingTempFile:
    def __init__(self):
        self.name = os.path.join(folder[0], str(uuid.uuid4()))

    def __del__(self):
        os.remove(self.name)


def pack_hook(tensor):
    temp_file = SelfDeletingTempFile()
    torch.save(tensor, temp_file.name)
    return temp_file


def unpack_hook(temp_file):
    return torch.load(temp_file.name)


x = torch.randn(5, requires_grad=True)
with saved_tensors_hooks(pack_hook, unpack_hook):
    y = x.pow(2) * x.sin()
print(len(os.listdir(folder[0])))
y.sum().backward()
print(x.grad)
del y
print(len(os.listdir(folder[0])))
try:
    with torch.autograd.graph.disable_saved_tensors_hooks("saved tensors hooks are disabled!"):
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            pass
except RuntimeError as e:
    print(e)

x = torch.randn(5)
y = f(x.requires_grad_())
y.grad_fn._raw_saved_self.register_hooks(lambda t: (t * 2,), lambda t: t[0])
y.sum().backward()
print(x.grad)
try:
    y2 = f(x)
    with saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
        y2 = f(x * 1)
except RuntimeError as e:
    print(str(e)[:80])

with save_on_cpu(pin_memory=False):
    y = (x.detach().requires_grad_() ** 3).sum()
y.backward()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.drop = nn.Dropout(0.3)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x + self.drop(torch.relu(self.fc(x)))


blocks = nn.Sequential(*[Block() for _ in range(4)])
data = torch.randn(3, 8)
grads = []
for mode in ("plain", "reentrant", "not", "sequential"):
    blocks.zero_grad()
    for b in blocks:
        b.calls = 0
    torch.manual_seed(1)
    h = data.clone().requires_grad_()
    h0 = h
    if mode == "sequential":
        h = checkpoint_sequential(blocks, 2, h, use_reentrant=False)
    else:
        for b in blocks:
            h = b(h) if mode == "plain" else checkpoint(b, h, use_reentrant=mode == "reentrant", preserve_rng_state=True)
    h.pow(2).sum().backward()
    grads.append([p.grad.clone() for p in blocks.parameters()] + [h0.grad])
    print(mode, [b.calls for b in blocks], all(torch.equal(a, b) for a, b in zip(grads[0], grads[-1])))


class MultiplyAdd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w, x, b):
        ctx.save_for_backward(w, x)
        return w * x + b

    @staticmethod
    def backward(ctx, g):
        w, x = ctx.saved_tensors
        return g * x, g * w, g


w = torch.tensor(2.0, requires_grad=True)
o = MultiplyAdd.apply(w, torch.tensor(3.0), torch.tensor(1.0, requires_grad=True))
print(o.grad_fn.saved_tensors, o.grad_fn.next_functions[0][0].variable is w, o.grad_fn.next_functions[1])
o.backward(retain_graph=True)
o.backward()
try:
    o.backward()
except RuntimeError as e:
    print(str(e)[:60])
with torch.autograd.graph.allow_mutation_on_saved_tensors():
    a = torch.ones(2, requires_grad=True)
    b = a.clone()
    c = (b**2).sum()
    b.mul_(10)
    c.backward()
print(a.grad)
outs = torch.autograd.graph.get_gradient_edge(w)
print(type(outs).__name__, outs.output_nr)
handle = torch.autograd.graph.register_multi_grad_hook([a, w], lambda gs: print("multi", [g is not None for g in gs]))
(a.sum() * w).backward()
handle.remove()
os.rmdir(folder.pop())
