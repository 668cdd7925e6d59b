import copy
import io
import pickle

import torch
from torch import nn
from torch.nn import Parameter, functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.acts = nn.ModuleDict({"relu": nn.ReLU(), "lrelu": nn.LeakyReLU(0.1)})
        self.scales = nn.ParameterList([Parameter(torch.ones(4) * i) for i in range(2)])
        self.named = nn.ParameterDict({"left": Parameter(torch.zeros(4)), "right": Parameter(torch.randn(4))})
        self.register_buffer("running", torch.zeros(4))
        self.register_buffer("temp", torch.ones(1), persistent=False)
        self.register_parameter("none", None)

    def forward(self, x, act="relu"):
        for i, layer in enumerate(self.layers):
            x = self.acts[act](layer(x)) * self.scales[i % 2] + self.named["right"]
        self.running = 0.9 * self.running + 0.1 * x.detach().mean(0)
        return x


net = Net()
print(net)
print([n for n, _ in net.named_parameters()])
print([n for n, _ in net.named_buffers()], list(net.state_dict()))
out = net(torch.randn(5, 4), "lrelu")
print(out.mean(), net.running)
net.layers.append(nn.Linear(4, 2))
net.layers.insert(0, nn.Identity())
print(len(net.layers), net.layers[-1], net.layers[1:3])
clone = copy.deepcopy(net)
again = pickle.loads(pickle.dumps(net))
clone.layers[1].weight.data.fill_(0)
print(torch.equal(again.layers[1].weight, net.layers[1].weight), net.layers[1].weight.abs().sum() > 0)
buffer = io.BytesIO()
torch.save(net.state_dict(), buffer)
buffer.seek(0)
print(again.load_state_dict(torch.load(buffer)), type(again.none))
seq = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
seq.add_module("last", nn.Linear(3, 1))
seq.append(nn.Sigmoid())
del seq[1]
print(seq, len(seq), seq[0].in_features, seq[-1])
print(net.double().layers[1].weight.dtype, net.to(torch.float32).running.dtype, next(net.parameters()).device)
try:
    net.undefined
except AttributeError as error:
    print(error)
try:
    net.layers[1](torch.randn(2, 3))
except RuntimeError as error:
    print(error)


class NoSuper(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(1, 1)


try:
    NoSuper()
except AttributeError as error:
    print(error)
try:
    net.weight_ = 3
    net.scales = "text"
except TypeError as error:
    print(str(error)[:60])
for name, module in net.named_children():
    print(name, "->", type(module).__name__, sum(p.numel() for p in module.parameters()))


def weights_init(m):
    if isinstance(m, nn.Linear):
        m.reset_parameters()
        nn.init.orthogonal_(m.weight)
        nn.init.uniform_(m.bias, -0.1, 0.1)


net.apply(weights_init)
print(torch.allclose(net.layers[1].weight @ net.layers[1].weight.T, torch.eye(4), atol=1e-6))
lazy = nn.LazyLinear(3)
print(lazy, lazy(torch.ones(2, 5)).shape, lazy)
print(nn.Bilinear(2, 3, 4), nn.PReLU(), nn.Softmax(dim=1), nn.Embedding(3, 2, padding_idx=0), nn.Conv1d(2, 3, 3))
print(nn.Upsample(scale_factor=2, mode="nearest"), nn.Upsample(scale_factor=2)(torch.arange(4.0).view(1, 1, 2, 2)), nn.Conv2d(1, 2, 3, bias=False))
print(nn.LayerNorm(2)(torch.eye(2)), F.layer_norm(torch.eye(2), (2,)), F.relu(torch.tensor([-1.0]), inplace=True))
print(F.gelu(torch.tensor([1.0, -1.0])), nn.Hardtanh()(torch.tensor([2.0])), nn.Unflatten(1, (2, 2)))
