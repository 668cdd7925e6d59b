# Pruning masks of every kind, and the lottery-ticket loop.
import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import prune

torch.manual_seed(0)


class LeNet(nn.Module):
    def __init__(self):
        super(LeNet, self).__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 4 * 4, 40)
        self.fc2 = nn.Linear(40, 10)
        self.act, self.pool = nn.Sigmoid(), nn.AvgPool2d(kernel_size=1, stride=1)
        nn.init.kaiming_normal_(self.conv1.weight, mode="fan_out", nonlinearity="relu")
        nn.init.constant_(self.fc1.bias, val=0)

    def forward(self, x):
        x = F.avg_pool2d(torch.sigmoid(self.conv1(x)), 2, stride=2, padding=1)
        x = self.pool(F.max_pool2d(self.act(self.conv2(x)), (2, 2)))
        x = x.view(-1, int(x.nelement() / x.shape[0]))
        return self.fc2(F.relu(self.fc1(x)))


model = LeNet()
module = model.conv1
prune.random_unstructured(module, name="weight", amount=0.3)
print([n for n, _ in module.named_parameters()], [n for n, _ in module.named_buffers()], len(module._forward_pre_hooks))
print(module.weight_mask.sum(), (module.weight == 0).sum())
prune.l1_unstructured(module, name="bias", amount=3)
print(module.bias_mask)
prune.ln_structured(module, name="weight", amount=0.5, n=2, dim=0)
for hook in module._forward_pre_hooks.values():
    if hook._tensor_name == "weight":
        print([type(h).__name__ for h in hook], type(hook).__name__)
print(list(model.state_dict())[:5])
model(torch.randn(1, 1, 28, 28)).sum().backward()
print(module.weight_orig.grad.count_nonzero() <= module.weight_mask.sum())
prune.remove(module, "weight")
print([n for n, _ in module.named_parameters()], (module.weight == 0).float().mean())
parameters_to_prune = ((model.conv2, "weight"), (model.fc1, "weight"), (model.fc2, "weight"))
prune.global_unstructured(parameters_to_prune, pruning_method=prune.L1Unstructured, amount=0.2)
for m, name in parameters_to_prune:
    w = getattr(m, name)
    print(f"{100.0 * float(torch.sum(w == 0)) / float(w.nelement()):.2f}%")


class FooBarPruningMethod(prune.BasePruningMethod):
    """Every other entry."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


def foobar_unstructured(module, name):
    FooBarPruningMethod.apply(module, name)
    return module


m = foobar_unstructured(nn.Linear(3, 2), name="bias")
print(m.bias_mask, prune.is_pruned(m))
prune.custom_from_mask(m, "weight", torch.tensor([[1, 0, 1], [0, 1, 0]]))
print(m.weight_mask, sorted(m.state_dict()))
for bad in (lambda: prune.l1_unstructured(m, "nope", 0.1), lambda: prune.l1_unstructured(m, "weight", 1.5), lambda: prune.remove(nn.Linear(1, 1), "weight")):
    try:
        bad()
    except Exception as e:
        print(type(e).__name__, str(e)[:70])
x = torch.randn(200, 10)
y = (x[:, :2].sum(1) > 0).long()
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
start = copy.deepcopy(net.state_dict())
for round_ in range(3):
    opt = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9, nesterov=True)
    for _ in range(15):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(round_, f"{loss.item():.4f}", sum(int((p == 0).sum()) for p in (net[0].weight, net[2].weight)))
    for layer in (net[0], net[2]):
        prune.l1_unstructured(layer, "weight", amount=0.4)
    with torch.no_grad():
        for name in ("0", "2"):
            net.get_submodule(name).weight_orig.copy_(start[f"{name}.weight"])
