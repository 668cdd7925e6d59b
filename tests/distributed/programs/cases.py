"""cases.py LIBRARY FOLDER: what `DistributedDataParallel` and its kin do on two processes; saves what came out.

The same program for PyTorch and tinytorch. Each case returns arrays, numbers and texts, in lists.
"""

import collections
import contextlib
import copy
import dataclasses
import importlib
import itertools
import pickle
import sys
import warnings

import numpy as np

LIBRARY, FOLDER = sys.argv[1:3]
torch = importlib.import_module(LIBRARY)
nn, F = importlib.import_module(f"{LIBRARY}.nn"), importlib.import_module(f"{LIBRARY}.nn.functional")
dist = importlib.import_module(f"{LIBRARY}.distributed")
functional = importlib.import_module(f"{LIBRARY}.distributed.nn.functional")
algorithms = f"{LIBRARY}.distributed.algorithms"
hooks = importlib.import_module(f"{algorithms}.ddp_comm_hooks.default_hooks")
power = importlib.import_module(f"{algorithms}.ddp_comm_hooks.powerSGD_hook")
local_sgd = importlib.import_module(f"{algorithms}.ddp_comm_hooks.post_localSGD_hook")
averagers = importlib.import_module(f"{algorithms}.model_averaging.averagers")
Join = importlib.import_module(f"{algorithms}.join").Join
checkpoint = importlib.import_module(f"{LIBRARY}.utils.checkpoint").checkpoint
DDP = importlib.import_module(f"{LIBRARY}.nn.parallel").DistributedDataParallel
warnings.simplefilter("ignore")
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


def values(*shape, seed=0, dtype=np.float32):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def filled(model, seed=0):
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(rng.standard_normal(tuple(p.shape)) * 0.3))
    return model


def linears(*sizes):
    return filled(nn.Sequential(*[nn.Linear(a, b) for a, b in itertools.pairwise(sizes)]))


def grads(model):
    return [None if p.grad is None else p.grad.detach().numpy().copy() for p in model.parameters()]


def parameters(model):
    return [p.detach().numpy().copy() for p in model.parameters()]


def mine(step=0, rows=4, columns=4):
    """This rank's inputs at a step."""
    return values(rows, columns, seed=10 * step + rank)


def train(net, steps=3, lr=0.1, **options):
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    for step in range(steps):
        optimizer.zero_grad()
        net(mine(step, **options)).square().mean().backward()
        optimizer.step()
    return parameters(net)


def module(forward, names="ab", **parts):
    """Return a module with a `forward`, which has linear layers and other parts."""
    made = type("Module", (nn.Module,), {"forward": forward})()
    for name, part in ({name: nn.Linear(4, 4) for name in names} | parts).items():
        setattr(made, name, part)
    return filled(made)


def branches():
    """Return a module with parts that are used or not, as the call says."""

    def forward(self, x, which):
        for name in which:
            x = getattr(self, name)(x)
        return x

    return module(forward, "abc")


def unused():
    found = []
    net = DDP(branches(), find_unused_parameters=True)
    for which in (("ab", "a"), ("a", "a"), ("ac", "bc"), ("abc", "abc")):  # by rank; gradients are not cleared between
        net(mine(), which[rank]).sum().backward()
        found.append(grads(net))
    net.zero_grad()
    with net.no_sync():
        net(mine(), "b").sum().backward()
    net(mine(), "a").sum().backward()
    return [*found, grads(net)]


def unused_outputs():
    pair = module(lambda self, x: {"a": self.a(x), "rest": [self.b(x), None, 3]})
    net = DDP(pair, find_unused_parameters=True)
    net(mine())["a" if rank else "rest"][0].sum().backward()
    first = grads(net)
    out = net(mine())
    out["a"].sum().backward()
    return [first, grads(net), list(out), out["rest"][1:]]


def outputs():
    Named = collections.namedtuple("Named", "x y")

    @dataclasses.dataclass
    class Data:
        x: object
        y: object

    found = []
    for kind in (Named, Data, lambda x, y: (x, [y]), lambda x, y: collections.OrderedDict(x=x, y=y)):
        net = DDP(module(lambda self, x: self.kind[0](self.a(x), x), kind=[kind]), find_unused_parameters=True)
        out = net(mine())
        x = out.x if hasattr(out, "x") else out["x"] if isinstance(out, dict) else out[0]
        x.sum().backward()
        found += [type(out).__name__, grads(net)]
    return found


def accumulation():
    net = DDP(linears(4, 5, 3))
    with net.no_sync():
        net(mine(0)).sum().backward()
        net(mine(1)).sum().backward()
    alone = grads(net)
    net(mine(2)).sum().backward()
    after = grads(net)
    y = net(mine(3))
    y.sum().backward(retain_graph=True)
    once = grads(net)
    y.sum().backward()  # not reduced: there was no forward pass before
    net.zero_grad()
    (net(mine(4)).sum() + net(mine(5)).sum()).backward()  # several forward passes
    many = grads(net)
    with net.no_sync():
        y = net(mine(6))
    y.sum().backward()  # the forward pass counts
    return [alone, after, once, many, grads(net)]


def autograd_grad():
    net = DDP(linears(4, 3))
    found = torch.autograd.grad(net(mine()).sum(), list(net.parameters()))
    net(mine()).sum().backward()
    return [[g.numpy() for g in found], grads(net)]


def create_graph():
    net = DDP(linears(4, 3))
    x = mine().requires_grad_()
    (g,) = torch.autograd.grad(net(x).pow(2).sum(), x, create_graph=True)
    g.pow(2).sum().backward()
    return [g.detach().numpy(), grads(net)[:1]]


def views():
    net = DDP(linears(4, 5, 3), gradient_as_bucket_view=True, bucket_cap_mb=1e-4)
    found = []
    for step in range(3):
        net(mine(step)).sum().backward()  # accumulates
        found.append(grads(net))
    net.zero_grad(set_to_none=False)
    net(mine()).sum().backward()
    return [*found, grads(net), [p.grad._is_view() for p in net.parameters()]]


def kinds():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2))
    model[1].double()
    model[2].to(torch.bfloat16)
    model[0].weight.requires_grad_(False)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x.to(layer.bias.dtype))
        return x

    net = DDP(module(forward, "", layers=model))
    net(mine()).float().sum().backward()
    return [None if p.grad is None else p.grad.double().numpy() for p in net.parameters()]


def buffers():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    filled(model)
    model[1].running_mean += rank
    net = DDP(model)
    found = [b.numpy().copy() for b in net.buffers()]
    train(net)
    found += [b.numpy().copy() for b in net.buffers()]
    with torch.no_grad():
        net(mine())  # begins with rank 0's once more; after it, no longer
    found += [b.numpy().copy() for b in net.buffers()]
    other = DDP(linears(4, 4), forward_sync_buffers=False)
    return [*found, net.require_forward_param_sync, other.broadcast_buffers, train(other)]


def static():
    def forward(self, x):
        x = checkpoint(self.a, x, use_reentrant=True)
        return self.b(checkpoint(self.a, x, use_reentrant=True))

    net = DDP(module(forward, "abc"), static_graph=True)
    found = []
    for step in range(3):
        net.zero_grad()
        net(mine(step).requires_grad_()).sum().backward()
        found.append(grads(net))
    return found


def checkpointed():
    def forward(self, x):
        return self.b(checkpoint(self.a, x, use_reentrant=self.reentrant))

    found = []
    for reentrant in (True, False):
        net = DDP(module(forward, reentrant=reentrant))
        for step in range(2):
            net(mine(step).requires_grad_()).sum().backward()
        found.append(grads(net))
    return found


def tied():
    model = module(lambda self, x: self.a(self.b(self.a(x))))
    model.b.weight = model.a.weight
    return train(DDP(model))


def uneven():
    found = []
    for by_initial in (True, False):
        for find_unused in (False, True):
            model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
            net = DDP(filled(model), find_unused_parameters=find_unused)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            with net.join(divide_by_initial_world_size=by_initial):
                for step in range(2 + 3 * rank):
                    optimizer.zero_grad()
                    with net.no_sync() if step == 2 else contextlib.nullcontext():
                        net(mine(step)).square().mean().backward()
                    optimizer.step()
            found += [parameters(net), [b.numpy().copy() for b in net.buffers()]]
    net = DDP(linears(4, 3))
    try:
        with Join([net], throw_on_early_termination=True):
            for step in range(1 + rank):
                net(mine(step)).sum().backward()
    except RuntimeError as error:
        found.append(str(error))
    return found


def compressed():
    found = []
    for hook in (hooks.allreduce_hook, hooks.fp16_compress_hook, hooks.fp16_compress_wrapper(hooks.allreduce_hook)):
        net = DDP(linears(4, 5, 3))
        net.register_comm_hook(None, hook)
        found.append(train(net))
    return found


def power_sgd():
    found = []
    for rank_, options in (
        (1, {}), (2, {"use_error_feedback": False}), (4, {"warm_start": False, "batch_tensors_with_same_shape": True}),
    ):  # fmt: skip
        net = DDP(linears(16, 20, 20, 20, 3))
        state = power.PowerSGDState(None, rank_, start_powerSGD_iter=2, orthogonalization_epsilon=1e-8, **options)
        net.register_comm_hook(state, power.powerSGD_hook)
        found += [train(net, 6, 0.01, columns=16), list(state.compression_stats()), state.iter]
    return found


def local():
    net = DDP(linears(4, 3))
    solo = [dist.new_group([each]) for each in range(world)][rank]
    net.register_comm_hook(local_sgd.PostLocalSGDState(None, solo, 2), local_sgd.post_localSGD_hook)
    averager = averagers.PeriodicModelAverager(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    found = []
    for step in range(5):
        optimizer.zero_grad()
        net(mine(step)).square().mean().backward()
        optimizer.step()
        averager.average_parameters(net.parameters())
        found.append(parameters(net))
    return found


def own_hook():
    """A hook that sums instead, and one with another future."""
    found = []
    net = DDP(linears(4, 5, 3))

    def summed(state, bucket):
        state.append([bucket.index(), bucket.is_last(), len(bucket.parameters()), tuple(bucket.buffer().shape)])
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda future: future.value()[0] * 10)

    net.register_comm_hook(found, summed)
    net(mine()).sum().backward()
    return [found, grads(net)]


def in_a_group():
    solo = [dist.new_group([each]) for each in range(world)][rank]
    net = DDP(linears(4, 3), process_group=solo)
    net(mine()).sum().backward()
    ignoring = linears(4, 4, 3)
    DDP._set_params_and_buffers_to_ignore_for_model(ignoring, ["0.weight", "0.bias"])
    other = DDP(ignoring)
    other(mine()).sum().backward()
    return [grads(net), grads(other)]


def copies():
    net = DDP(linears(4, 3))
    other = copy.deepcopy(net)
    other(mine()).sum().backward()
    return [grads(other), grads(net), list(net.state_dict())]


def recovers():
    def forward(self, x, fails=False):
        x = self.a(x)
        if fails:
            raise KeyError("forward")
        return self.b(x)

    net = DDP(module(forward))
    with contextlib.suppress(KeyError):
        net(mine(), True)
    net(mine()).sum().backward()
    first = grads(net)

    def fail(g):
        raise KeyError("backward")

    y = net(mine())
    y.register_hook(fail)
    with contextlib.suppress(KeyError, RuntimeError):
        y.sum().backward()
    net(mine()).sum().backward()  # no gradient had come
    return [first, grads(net)]


def errors():
    found = []

    def ends(call):
        try:
            call()
        except Exception as error:
            found.append([type(error).__name__, str(error).split("\n")[0][:160]])
        else:
            found.append("none")

    ends(lambda: DDP(linears(*[4] * (2 + rank))))
    net = DDP(branches())
    net(mine(), "ab").sum().backward()
    ends(lambda: net(mine(), "ab"))
    ends(lambda: net._check_reducer_finalized())
    return found


def exchanges():
    """Gradients through exchanges."""
    found = []

    def through(call, parts=False):
        x = mine(rows=2 * world if parts else 3).requires_grad_()
        inputs = list(x.chunk(world)) if parts else x
        out = call(inputs)
        out = torch.cat(list(out)) if isinstance(out, (list, tuple)) else out
        (out * values(*out.shape, seed=5 + rank)).sum().backward()
        found.append([out.detach().numpy(), x.grad.numpy()])

    through(lambda x: functional.all_reduce(x))
    through(lambda x: functional.all_gather(x))
    through(lambda x: functional.broadcast(x, 1))
    through(lambda x: functional.reduce(x, 1) * float(rank == 1))
    through(lambda x: functional.gather(x, 1))
    through(lambda x: functional.scatter(x, 1), parts=True)
    through(lambda x: functional.reduce_scatter(torch.zeros(2, 4), x), parts=True)
    through(lambda x: functional.all_to_all([torch.zeros(2, 4) for _ in range(world)], x), parts=True)
    through(lambda x: functional.all_to_all_single(torch.zeros(2 * world, 4), torch.cat(x)), parts=True)
    return found


CASES = (
    unused, unused_outputs, outputs, accumulation, autograd_grad, create_graph, views, kinds, buffers, static,
    checkpointed, tied, uneven, compressed, power_sgd, local, own_hook, in_a_group, copies, recovers, errors, exchanges,
)  # fmt: skip
if __name__ == "__main__":
    found = {}
    for case in CASES:
        if not sys.argv[3:] or case.__name__ in sys.argv[3:]:
            found[case.__name__] = case()
    with open(f"{FOLDER}/{LIBRARY}{rank}.pickle", "wb") as file:
        pickle.dump(found, file)
    dist.barrier()  # both have saved, whatever an end does
    dist.destroy_process_group()
