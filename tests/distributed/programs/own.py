"""What PyTorch does on other devices only, or not at all: layers over processes, errors on all ranks, deadlines."""

import datetime
import gc
import time

import numpy as np
from tinytorch.distributed.algorithms.ddp_comm_hooks import default_hooks
from tinytorch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, batched_powerSGD_hook

import tinytorch as torch
import tinytorch.distributed as dist
from tinytorch import nn
from tinytorch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
rank, world = dist.get_rank(), dist.get_world_size()


def close(a, b, tolerance=1e-5):
    a, b = (np.asarray(each.detach()) if isinstance(each, torch.Tensor) else each for each in (a, b))
    np.testing.assert_allclose(a, b, tolerance, tolerance)


def values(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def error(call):
    try:
        call()
    except (RuntimeError, ValueError) as found:
        return str(found)
    raise AssertionError("no error")


def one_model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 3))


def sync_batch_norm():
    sizes = [3, 5], [1, 7], [0, 6]
    settings = ({}, {"affine": False}, {"momentum": None}, {"track_running_stats": False}, {"bias": False})
    for shape in ((2,), (2, 3), (2, 4, 9)):
        for counts in sizes:
            for options in settings:
                layer = nn.SyncBatchNorm(2, **options)
                for k, p in enumerate(layer.parameters()):
                    p.data = values(2, seed=7 + k) + 2
                reference = nn.BatchNorm1d(2, **options) if len(shape) == 1 else nn.BatchNorm2d(2, **options)
                reference.load_state_dict(layer.state_dict())
                x, g = values(sum(counts), *shape) * 3 + 5, values(sum(counts), *shape, seed=1)
                begin = sum(counts[:rank])
                part = slice(begin, begin + counts[rank])
                for _ in range(2):
                    mine, everyone = x[part].clone().requires_grad_(), x.clone().requires_grad_()
                    if everyone.dim() == 3:
                        expected = reference(everyone.unsqueeze(-1)).squeeze(-1)
                    else:
                        expected = reference(everyone)
                    (out := layer(mine)).backward(g[part])
                    expected.backward(g)
                    close(out, expected[part])
                    close(mine.grad, everyone.grad[part])
                for p, q in zip(layer.parameters(), reference.parameters(), strict=True):
                    dist.all_reduce(p.grad)
                    close(p.grad, q.grad, 1e-4)
                for a, b in zip(layer.buffers(), reference.buffers(), strict=True):
                    close(a, b)
                layer.eval(), reference.eval()
                if options != {"track_running_stats": False} and counts[rank]:  # each for itself
                    x = x[part].unsqueeze(-1) if len(shape) == 2 else x[part]
                    close(layer(x), reference(x))


def sync_batch_norm_in_a_group():
    solo = [dist.new_group([each]) for each in range(world)][rank]
    layer, alone = nn.SyncBatchNorm(2, process_group=solo), nn.BatchNorm1d(2)
    x = values(4, 2, seed=rank)
    close(layer(x), alone(x))
    layer = nn.SyncBatchNorm(2)
    out = layer(x.bfloat16().requires_grad_())
    out.float().sum().backward()
    assert out.dtype == torch.bfloat16
    x = x.requires_grad_()
    (g,) = torch.autograd.grad(layer(x).square().sum(), x, create_graph=True)
    assert "once_differentiable" in error(lambda: g.sum().backward())


def converted():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 2))
    torch.manual_seed(0)
    whole = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 2))
    model.load_state_dict(whole.state_dict())
    x = values(8, 1, 4, 4)
    net = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(model))
    whole.load_state_dict(model.state_dict())
    net(x[rank::world]).square().mean().backward()
    whole(x).square().mean().backward()
    for p, q in zip(net.parameters(), whole.parameters(), strict=True):
        close(p.grad, q.grad)


def hooks():
    for hook, tolerance in (
        (default_hooks.bf16_compress_hook, 2e-2),
        (default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook), 2e-2),
        (default_hooks.allreduce_hook, 1e-6),
    ):
        net = DDP(one_model())
        net.register_comm_hook(None, hook)
        net(values(4, 4, seed=rank)).sum().backward()
        plain = DDP(one_model())
        plain(values(4, 4, seed=rank)).sum().backward()
        for p, q in zip(net.parameters(), plain.parameters(), strict=True):
            close(p.grad, q.grad, tolerance)


def batched_power_sgd():
    """What is lost is made up for: over many steps the sum of what is applied is that of the gradients."""
    net = DDP(nn.Linear(8, 8, bias=False))
    state = PowerSGDState(None, 1, 2)
    net.register_comm_hook(state, batched_powerSGD_hook)
    total = np.zeros((8, 8), np.float32)
    for _ in range(60):
        net.zero_grad()
        net(values(4, 8, seed=rank)).square().sum().backward()
        total += net.module.weight.grad.numpy()
    exact = DDP(nn.Linear(8, 8, bias=False))
    exact.module.load_state_dict(net.module.state_dict())
    exact(values(4, 8, seed=rank)).square().sum().backward()
    close(total / 60, exact.module.weight.grad, 0.1 * float(exact.module.weight.grad.abs().max()))
    assert state.compression_stats()[0] > 3, state.compression_stats()
    everyone = [None] * world
    dist.all_gather_object(everyone, total.tobytes())
    assert everyone[0] == everyone[1]


def static_after_no_sync():
    """The first backward passes are not averaged: what they leave is, later."""
    net, plain = DDP(one_model(), static_graph=True), DDP(one_model())
    for step in range(3):
        for each in (net, plain):
            each.zero_grad()
            for part in range(2):
                with each.no_sync():
                    each(values(4, 4, seed=9 * step + 3 * part + rank)).sum().backward()
            each(values(4, 4, seed=rank)).sum().backward()
        for p, q in zip(net.parameters(), plain.parameters(), strict=True):
            close(p.grad, q.grad)


def create_graph():
    """`.grad` with a graph (where PyTorch refuses to write) is averaged like others."""
    net, plain = DDP(one_model()), DDP(one_model())
    net(values(4, 4, seed=rank)).square().sum().backward(create_graph=True)
    plain(values(4, 4, seed=rank)).square().sum().backward()
    for p, q in zip(net.parameters(), plain.parameters(), strict=True):
        close(p.grad, q.grad)


def models_take_turns():
    """Two models of one program, one of them in another group, do not come into each other's way."""
    nets = [DDP(one_model(1)), DDP(one_model(2), process_group=dist.new_group()), DDP(one_model(3))]
    ys = [net(values(4, 4, seed=rank)).sum() for net in nets]
    (ys[0] * 2 + ys[1] + ys[2]).backward()
    for k, net in enumerate(nets):
        close(net.module[1].bias.grad, np.full(3, 8.0 if k == 0 else 4.0))


def exchanges_under_way():
    """What a rank has begun goes on while it waits for gradients, of which another has none before that has ended."""
    net = DDP(one_model())
    y = net(values(4, 4)).sum()
    if rank == 1:
        time.sleep(0.3)
    x = torch.ones(2)
    work = dist.all_reduce(x, async_op=True)
    if rank == 1:
        work.wait()
    y.backward()
    work.wait()
    close(x, np.full(2, 2.0))
    other = dist.new_group()
    if rank == 1:
        time.sleep(0.3)
    work = dist.all_reduce(x, async_op=True)
    if rank == 1:
        work.wait()
    dist.barrier(other)
    work.wait()


def models_differ():
    words = error(lambda: DDP(nn.Linear(4, 5 + rank)))
    assert words == (
        "[1]: params[0] in this process with sizes [6, 4] appears not to match sizes of the same param in process 0."
    ), words
    words = error(lambda: DDP(nn.Linear(4, 5).to([torch.float32, torch.float64][rank])))
    assert "[1]: params[0] in this process with dtype torch.float64" in words, words
    words = error(lambda: DDP(nn.Sequential(nn.Linear(2, 2), *[nn.PReLU()] * rank)))
    assert words == (
        f"DDP expects same model across all ranks, but Rank {rank} has {2 + rank} params, while rank {1 - rank} has "
        f"inconsistent {3 - rank} params."
    ), words
    words = error(lambda: DDP(nn.Linear(4, 5), bucket_cap_mb=1 + rank))
    assert "same arguments on all ranks" in words, words


def communicators_are_used_again():
    group = dist.group.WORLD
    gc.collect()
    before = len(group.copies)
    for _ in range(5):
        net = DDP(one_model())
        net(values(4, 4, seed=rank)).sum().backward()
    del net
    assert len(group.copies) <= before + 2, (before, len(group.copies))


def late():
    """A rank that runs another number of backward passes gets no wrong numbers, but an error that says where."""
    dist.group.WORLD.set_timeout(datetime.timedelta(seconds=0.3))
    net = DDP(one_model())
    dist.barrier()
    if rank == 0:
        y = net(values(4, 4))
        words = error(lambda: y.sum().backward())
        assert words.startswith("[rank 0] DistributedDataParallel's all_reduce of gradients"), words
        assert "did not end within 0.3 s" in words, words
        assert "Expected to have finished reduction" in error(lambda: net(values(4, 4)))
    dist.group.WORLD.set_timeout(datetime.timedelta(seconds=20))


for case in (
    sync_batch_norm, sync_batch_norm_in_a_group, converted, hooks, batched_power_sgd,
    static_after_no_sync, create_graph, models_take_turns, exchanges_under_way, models_differ,
    communicators_are_used_again, late,
):  # fmt: skip
    case()
    if rank == 0:
        print(f"{case.__name__} ok", flush=True)
dist.destroy_process_group()
