from collections import OrderedDict
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
model = nn.Sequential(
    OrderedDict(
        [
            ("conv1", nn.Conv2d(1, 4, 3, padding=1)),
            ("relu1", nn.ReLU()),
            ("pool", nn.AdaptiveAvgPool2d(2)),
            ("flat", nn.Flatten()),
            ("fc", nn.Linear(16, 3)),
        ]
    )
)
activation = {}


def get_activation(name):
    def hook(model, input, output):
        activation[name] = output.detach()

    return hook


handles = [m.register_forward_hook(get_activation(n)) for n, m in model.named_children()]
x = torch.randn(2, 1, 6, 6)
output = model(x)
for k, v in activation.items():
    print(k, tuple(v.shape), f"{v.mean():.5f} {v.std():.5f}")
for h in handles:
    h.remove()
grads = {}
h1 = model.conv1.register_full_backward_hook(lambda m, gi, go: grads.update(conv=go[0].abs().sum()))
h2 = model.fc.register_full_backward_hook(lambda m, gi, go: grads.update(fc=(gi[0].shape, go[0].shape)))
h3 = model.fc.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
F.cross_entropy(model(x), torch.tensor([0, 2])).backward()
print(grads)


def stats(module, args, output, name=""):
    print(name, type(module).__name__, len(args), tuple(output.shape))


for name, layer in model.named_modules():
    if not list(layer.children()):
        layer.register_forward_hook(partial(stats, name=name))
model(x)
# Grad-CAM
features = {}
model.relu1.register_forward_hook(lambda m, i, o: (o.retain_grad(), features.update(map=o))[0])
score = model(x)[0, 1]
model.zero_grad()
score.backward()
weights = features["map"].grad.mean(dim=(2, 3), keepdim=True)
cam = F.relu((weights * features["map"]).sum(1))[0]
print((cam / (cam.max() + 1e-9)).detach())
with torch.no_grad():
    up = F.interpolate(cam[None, None], size=(12, 12), mode="bilinear", align_corners=False)
print(up.shape, up.sum())
model.fc.weight.register_hook(lambda g: print("grad of fc.weight", tuple(g.shape)))
model(x).sum().backward()
print([n for n, m in model.named_modules()], model.get_submodule("conv1"), model.fc._forward_pre_hooks.__len__())
torch.nn.utils.parametrizations.weight_norm(model.fc)
print([n for n, _ in model.fc.named_parameters()])

# An optimizer step inside backward, and other hooks of parameters and optimizers.
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

model[0].register_full_backward_pre_hook(lambda m, g: (g[0] * 0.5,))
h = model.register_forward_hook(lambda m, args, kwargs, out: out + 1, with_kwargs=True)
model(X).sum().backward()
h.remove()
print(len(model._forward_hooks), len(model[0]._backward_hooks), model[0].weight.grad.norm())
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
