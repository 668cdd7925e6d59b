"""Sharded optimizers against plain ones: the same numbers and less state. Arguments: what to do, and a folder."""

from __future__ import annotations

import copy
import itertools
import sys
from typing import Any

from tinytorch.distributed.algorithms.join import Join

import tinytorch as torch
import tinytorch.distributed as dist
from tinytorch.distributed.optim import ZeroRedundancyOptimizer
from tinytorch.nn.parallel import DistributedDataParallel

what, folder = sys.argv[1], sys.argv[2]
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()

OPTIMIZERS: list[tuple[Any, dict[str, Any]]] = [
    (torch.optim.SGD, {"lr": 0.1}), (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (torch.optim.Adam, {"lr": 0.01}), (torch.optim.AdamW, {"lr": 0.01, "amsgrad": True}),
    (torch.optim.RMSprop, {"lr": 0.01, "momentum": 0.5}), (torch.optim.Adagrad, {"lr": 0.1}),
]  # fmt: skip


def models() -> tuple[Any, Any]:
    torch.manual_seed(3)
    sizes = [8, 64, 64, 64, 64, 64, 4]
    layers = [torch.nn.Sequential(torch.nn.Linear(m, n), torch.nn.Tanh()) for m, n in itertools.pairwise(sizes)]
    model = torch.nn.Sequential(*layers)
    return model, copy.deepcopy(model)


def train(model: Any, optimizer: Any, steps: range, schedule: bool = True) -> None:
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2) if schedule else None
    for step in steps:
        x = torch.randn(16, 8, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        if scheduler:
            scheduler.step()


def numbers(optimizer: Any) -> int:
    """Return how many numbers an optimizer keeps beside counts."""
    return sum(each.numel() for kept in optimizer.state.values() for each in kept.values() if each.dim())


exact = True


def same(a: Any, b: Any) -> None:
    if isinstance(a, torch.Tensor):
        assert torch.equal(a, b) if exact else torch.allclose(a, b, rtol=1e-6, atol=1e-8), (a, b)
    elif isinstance(a, dict):
        assert a.keys() == b.keys(), (a.keys(), b.keys())
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert a == b, (a, b)


if what == "steps":
    for (kind, options), views in [(each, views) for each in OPTIMIZERS for views in (False, True)]:
        model, plain = models()
        groups = [
            [{"params": list(m[:3].parameters())}, {"params": list(m[3:5].parameters()), "lr": 0.05}]
            for m in (model, plain)
        ]
        zero = ZeroRedundancyOptimizer(groups[0], kind, parameters_as_bucket_view=views, **options)
        alone = kind(groups[1], **options)
        # BLAS's axpy, which is the plain step, rounds otherwise at the end of what it gets: small parameters as one.
        exact = kind is not torch.optim.SGD or "momentum" in options
        for optimizer, m in ((zero, model), (alone, plain)):
            train(m, optimizer, range(4))
            optimizer.add_param_group({"params": list(m[5].parameters()), "lr": 0.02})
            train(m, optimizer, range(4, 7), schedule=False)
        same(model.state_dict(), plain.state_dict())
        kept = [0] * size
        dist.all_gather_object(kept, numbers(zero.optim))
        assert sum(kept) == numbers(alone) and max(kept) <= 1.5 * sum(kept) / size, kept
        assert zero.param_groups[1]["lr"] == alone.param_groups[1]["lr"] != options["lr"]
        try:
            zero.state_dict()
            raise AssertionError("there is no whole state")
        except RuntimeError as error:
            assert f"consolidate_state_dict(to={rank})" in str(error)
        zero.consolidate_state_dict(to=size - 1)
        if rank == size - 1:
            same(zero.state_dict(), alone.state_dict())

elif what == "save":
    model, _ = models()
    ddp = DistributedDataParallel(model)
    zero = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.Adam, lr=0.01)
    train(ddp, zero, range(5), schedule=False)
    zero.consolidate_state_dict()
    if rank == 0:
        torch.save({"model": model.state_dict(), "optimizer": zero.state_dict()}, f"{folder}/zero.pt")

elif what == "resume":  # with another number of processes, and by the plain optimizer
    saved = torch.load(f"{folder}/zero.pt")
    (model, plain), (whole, _) = models(), models()
    zero = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, parameters_as_bucket_view=True, lr=0.5)
    alone, other = torch.optim.Adam(plain.parameters(), lr=0.5), torch.optim.Adam(whole.parameters(), lr=0.01)
    for m, optimizer in ((model, zero), (plain, alone)):
        m.load_state_dict(saved["model"])
        optimizer.load_state_dict(copy.deepcopy(saved["optimizer"]))
        train(m, optimizer, range(5, 8), schedule=False)
    train(whole, other, range(8), schedule=False)
    same(model.state_dict(), plain.state_dict())
    for a, b in zip(plain.parameters(), whole.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-6)  # (several had averaged their gradients)

elif what == "join":  # rank k has k more inputs than rank 0
    model, _ = models()
    ddp = DistributedDataParallel(model)
    zero = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.Adam, lr=0.01)
    with Join([ddp, zero]):
        train(ddp, zero, range(2 + rank), schedule=False)
    for p in model.parameters():
        all_of_them = [torch.empty_like(p) for _ in range(size)]
        dist.all_gather(all_of_them, p.detach())
        assert all(torch.equal(p, each) for each in all_of_them)

print("done", rank)
dist.destroy_process_group()
