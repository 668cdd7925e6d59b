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
