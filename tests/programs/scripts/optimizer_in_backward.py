# An optimizer step inside backward, and other hooks of parameters and modules.
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 3))
optimizer_dict = {p: torch.optim.Adam([p], lr=1e-2, foreach=False) for p in model.parameters()}


def optimizer_hook(parameter) -> None:
    optimizer_dict[parameter].step()
    optimizer_dict[parameter].zero_grad()


handles = [p.register_post_accumulate_grad_hook(optimizer_hook) for p in model.parameters()]
X, Y = torch.randn(64, 10), torch.randint(0, 3, (64,))
for i in range(10):
    loss = F.cross_entropy(model(X), Y)
    loss.backward()
    if i % 3 == 0:
        print(i, f"{loss.item():.5f}", [p.grad for p in model.parameters()])
for h in handles:
    h.remove()
F.cross_entropy(model(X), Y).backward()
print([p.grad is None for p in model.parameters()])

activations, gradients = {}, {}


def save_activation(name):
    def hook(module, args, output):
        activations[name] = output.detach()

    return hook


def save_gradient(name):
    def hook(module, grad_input, grad_output):
        gradients[name] = [None if g is None else tuple(g.shape) for g in grad_input], grad_output[0].norm()

    return hook


hs = []
for name, m in model.named_children():
    hs.append(m.register_forward_hook(save_activation(name)))
    hs.append(m.register_full_backward_hook(save_gradient(name)))
hs.append(model.register_forward_pre_hook(lambda m, args: (args[0] * 2,)))
hs.append(model[0].register_full_backward_pre_hook(lambda m, g: (g[0] * 0.5,)))
hs.append(model.register_forward_hook(lambda m, args, kwargs, out: out + 1, with_kwargs=True))
out = model(X)
out.sum().backward()
print({k: (tuple(v.shape), f"{v.mean():.4f}") for k, v in activations.items()})
print({k: (v[0], f"{v[1]:.3f}") for k, v in gradients.items()})
for h in hs:
    h.remove()
print(len(model._forward_hooks), len(model[0]._backward_hooks))
before = []
h = nn.modules.module.register_module_forward_pre_hook(lambda m, a: before.append(type(m).__name__))
model(X)
h.remove()
print(before)
x = torch.randn(3, requires_grad=True)
y = x * 2
y.retain_grad()
y.register_hook(lambda g: g * 3)
x.register_hook(lambda g: print("leaf", g))
y.grad_fn.register_hook(lambda gi, go: print("node", gi, go))
y.grad_fn.register_prehook(lambda go: (go[0] + 1,))
y.sum().backward()
print(y.grad, x.grad)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
h1 = opt.register_step_pre_hook(lambda o, a, k: print("pre", len(a), k))
h2 = opt.register_step_post_hook(lambda o, a, k: print("post"))
opt.step()
h3 = opt.register_state_dict_post_hook(lambda o, sd: {**sd, "extra": 7})
print(sorted(opt.state_dict()))
h4 = opt.register_load_state_dict_pre_hook(lambda o, sd: print("load", sorted(sd)))
opt.load_state_dict(opt.state_dict())
from torch.optim.optimizer import register_optimizer_step_post_hook

h5 = register_optimizer_step_post_hook(lambda o, a, k: print("global", type(o).__name__))
opt.step()
h5.remove()
del optimizer_dict  # its keys are parameters
