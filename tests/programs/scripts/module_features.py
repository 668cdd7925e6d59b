# State-dict hooks, extra state, containers, learning-rate finder, timers, and other features of modules.
import copy
import time
import warnings
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.benchmark as benchmark
from torch.nn.utils import parameters_to_vector, vector_to_parameters, clip_grad_value_, get_total_norm, clip_grads_with_norm_, skip_init, fuse_conv_bn_eval

torch.manual_seed(0)


class Scaler(nn.Module):
    version_seen = None
    _version = 3

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.register_parameter("gain", nn.Parameter(torch.ones(4)))
        self.register_parameter("none", None)
        self._register_state_dict_hook(lambda module, sd, prefix, meta: sd.update({prefix + "hooked": torch.tensor(1.0)}))
        self._register_load_state_dict_pre_hook(self.rename)

    def rename(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        Scaler.version_seen = local_metadata.get("version")
        state_dict.pop(prefix + "hooked", None)
        if prefix + "scale" in state_dict:
            state_dict[prefix + "gain"] = state_dict.pop(prefix + "scale")

    def forward(self, x, *, shift=0.0):
        return (x - self.mean) * self.gain + shift

    def extra_repr(self):
        return "features=4"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scaler = Scaler()
        self.heads = nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.Sequential(nn.Linear(4, 3), nn.Softplus())})
        self.coef = nn.ParameterList([nn.Parameter(torch.randn(2)) for _ in range(2)])
        self.table = nn.ParameterDict({"w": nn.Parameter(torch.ones(3)), "b": torch.zeros(3)})
        self.tied = self.heads["a"].weight
        self.register_forward_pre_hook(self.check, with_kwargs=True)
        self.calls = []

    @staticmethod
    def check(module, args, kwargs):
        module.calls.append(sorted(kwargs))
        return args, {**kwargs, "which": kwargs.get("which", "a")}

    def forward(self, x, which):
        return self.heads[which](self.scaler(x, shift=0.1))


net = Net()
print(net)
print(list(net.state_dict()), net.state_dict()._metadata["scaler"])
print([n for n, _ in net.named_parameters()], len(list(net.named_parameters(remove_duplicate=False))))
print([n for n, _ in net.named_modules()], [type(m).__name__ for m in net.children()])
print(net(torch.ones(1, 4)).shape, net(torch.ones(1, 4), which="b").shape, net.calls)
sd = net.state_dict()
sd["scaler.scale"] = sd.pop("scaler.gain") * 3
print(net.load_state_dict(sd), net.scaler.gain, Scaler.version_seen)
h = net.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
print(net.load_state_dict({}, strict=False), net.get_parameter("scaler.gain").shape, net.get_buffer("scaler.mean").shape)
h.remove()
for path in ("scaler.nope", "heads.c.weight"):
    try:
        net.get_parameter(path)
    except AttributeError as e:
        print(e)
print(net.half().heads["a"].weight.dtype, net.float().to(torch.float64).coef[0].dtype, net.float().training)
other = copy.deepcopy(net)
print(torch.equal(parameters_to_vector(net.parameters()), parameters_to_vector(other.parameters())), other.tied is other.heads["a"].weight)
vec = parameters_to_vector(net.parameters())
vector_to_parameters(vec * 0.5, net.parameters())
print(parameters_to_vector(net.parameters()).norm() / vec.norm())
net(torch.randn(5, 4)).pow(2).sum().backward()
grads = [p.grad for p in net.parameters() if p.grad is not None]
total = get_total_norm(grads)
clip_grads_with_norm_(net.parameters(), 0.1, total)
print(total, get_total_norm(grads), nn.utils.clip_grad_norm_(net.parameters(), max_norm=0.05))
clip_grad_value_(net.parameters(), 0.01)
print(max(g.abs().max().item() for g in grads))
try:
    nn.utils.clip_grad_norm_([p for p in net.parameters() if p.grad is not None and p.grad.fill_(torch.inf).sum() > 0], 1.0, error_if_nonfinite=True)
except RuntimeError as error:
    print(str(error)[:50])
lin = skip_init(nn.Linear, 3, 2)
print(lin, lin.weight.shape)
del lin
conv, bn = nn.Conv2d(2, 3, 3).eval(), nn.BatchNorm2d(3).eval()
bn.running_mean.uniform_(-1, 1), bn.running_var.uniform_(0.5, 2)
im = torch.randn(1, 2, 5, 5)
print(torch.allclose(fuse_conv_bn_eval(conv, bn)(im), bn(conv(im)), atol=1e-6))
seq = nn.Sequential(nn.Linear(2, 2))
seq.append(nn.ReLU()).extend([nn.Linear(2, 2), nn.Tanh()])
seq.insert(1, nn.LayerNorm(2))
print(seq, seq[1:3], len(seq), seq.pop(0))
print(nn.Sequential(*(list(seq) + [nn.Identity()])) + nn.Sequential(nn.ReLU()))


class LazyNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.fc = nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.LazyLinear(2)

    def forward(self, x):
        return self.fc(self.bn(self.conv(x)).flatten(1))


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    lazy = LazyNet()
    print(lazy, lazy.fc.has_uninitialized_params())
    lazy(torch.randn(2, 3, 6, 6))
    print(lazy, lazy.fc.weight.shape)


mlp = nn.Sequential(nn.Linear(16, 16), nn.SELU(), nn.AlphaDropout(0.1))
x = torch.randn(10, 16)
print(mlp(x).prod(1, keepdim=True).shape)
timer = benchmark.Timer(stmt="f(x)", globals={"x": x, "f": mlp.eval()}, label="mlp", sub_label="small", description="10x16")
m = timer.timeit(20)
print(m.median > 0, m.number_per_run, len(m.times), m.task_spec.sub_label)
m = timer.blocked_autorange(min_run_time=0.01)
print(m.mean > 0, m.iqr >= 0)
del timer, m
gc_before = torch.is_grad_enabled()
with torch.autograd.profiler.record_function("block"), torch.random.fork_rng():
    torch.manual_seed(99)
    torch.rand(3)
print(torch.rand(2), gc_before, torch.get_default_dtype(), torch.is_tensor(x), torch.numel(x), torch.is_floating_point(x))
