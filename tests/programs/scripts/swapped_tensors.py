# Two tensors exchange what they are, under the eyes of an optimizer, a graph and a weak reference.
import weakref

import torch
from torch import nn
from torch.utils import swap_tensors


def attempt(call):
    try:
        print(call())
    except RuntimeError as error:
        print("RuntimeError", str(error)[:40] if "gradient edge" not in str(error) else "Expected")


a, b = torch.arange(2), torch.ones(3, dtype=torch.double)
a.note = "a"
held = [a]
swap_tensors(a, b)
print(a, b, b.note, hasattr(a, "note"), held[0].dtype)

layer = nn.Linear(2, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
other = nn.Parameter(torch.full((1, 2), 3.0))
swap_tensors(layer.weight, other)
layer(torch.ones(1, 2)).sum().backward()
optimizer.step()
print(layer.weight, other, layer.weight.grad)

# What was recorded before may not run.
w = nn.Parameter(torch.ones(2))
out = w.sum()
swap_tensors(w, nn.Parameter(torch.zeros(2)))
attempt(out.backward)
out = (w * 2).sum()
attempt(out.backward)
print(w.grad)

reference = weakref.ref(b)
attempt(lambda: swap_tensors(a, b))
del reference


class Derived(torch.Tensor):
    pass


s, t = torch.ones(2).as_subclass(Derived), torch.zeros(1)
swap_tensors(s, t)
print(type(s).__name__, type(t).__name__, s.tolist(), t.tolist())

# A module's conversion keeps the objects.
torch.__future__.set_swap_module_params_on_conversion(True)
layer = nn.Linear(2, 1)
weight, optimizer = layer.weight, torch.optim.SGD(layer.parameters(), lr=0.5)
layer.double()
layer(torch.ones(1, 2, dtype=torch.double)).sum().backward()
optimizer.step()
print(weight is layer.weight, weight.dtype, weight.grad.dtype)
torch.__future__.set_swap_module_params_on_conversion(False)
del s, t
