"""A long chain of nodes is freed without deep recursion, also on a small stack."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

#: Runs in place of core/graph.py as it is where Python itself does not end the recursion.
AS_IN_3_13 = """
import importlib.util, sys
from importlib.machinery import SourceFileLoader

class Loader(SourceFileLoader):
    def get_code(self, name):
        source = self.get_source(name)
        assert "sys.version_info[:2] == (3, 13)" in source
        return compile(source.replace("sys.version_info[:2] == (3, 13)", "True"), self.path, "exec")

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "tinytorch.core.graph":
            file = f"{path[0]}/graph.py"
            return importlib.util.spec_from_file_location(name, file, loader=Loader(name, file))

sys.meta_path.insert(0, Finder())
"""

PROGRAM = """
import gc, sys, threading, weakref
import tinytorch as torch
from tinytorch.core import graph

LENGTH, USUAL = 6000, sys.version_info[:2] != (3, 13)
assert graph.FREES_BY_RECURSION == (not USUAL or "Loader" in globals())

class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * 1.0001

    @staticmethod
    def backward(ctx, g):
        return g * 1.0001

def checkpointed(y):
    return torch.utils.checkpoint.checkpoint(lambda y: y.sin(), y, use_reentrant=False)

def hooked(y):
    y = y * 1.0001
    y.register_hook(lambda g: g)
    return y

STEPS = {
    "number": lambda y: y * 1.0001, "itself": lambda y: y * y, "unary": lambda y: y.sin(), "view": lambda y: y.view(2),
    "several inputs": lambda y: torch.cat([y[:1], y[1:]]), "several outputs": lambda y: torch.stack(y.unbind()),
    "in place": lambda y: y.mul_(1.0001), "function": Scaled.apply, "hook": hooked, "checkpoint": checkpointed,
}

def chain(step, length=LENGTH):
    x = torch.ones(2, requires_grad=True)
    y = x.clone()
    first = weakref.ref(y.grad_fn)
    for _ in range(length):
        y = step(y)
    return x, y, first

def nodes_in_a_row(y):
    node, most, here = y.grad_fn, 0, 0
    while node is not None:
        here = 0 if hasattr(node, "tail") else here + 1
        most = max(most, here)
        node = node.edges[0][0] if node.edges else None
    return most

def run():
    for name, step in STEPS.items():
        x, y, first = chain(step, 400 if name == "checkpoint" else LENGTH // 2)
        del y
        assert first() is None, name
    x, y, first = chain(STEPS["number"])
    assert nodes_in_a_row(y) <= (graph.STRIDE if graph.FREES_BY_RECURSION else LENGTH + 2)
    for retain_graph in (True, False):
        y.sum().backward(retain_graph=retain_graph)
    assert abs(x.grad[0] / (2 * 1.0001**LENGTH) - 1) < 1e-3
    del y
    assert first() is None
    x, y, first = chain(STEPS["unary"], LENGTH // 4)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    del y
    assert first() is not None
    del g
    assert first() is None
    x, y, first = chain(STEPS["number"])
    z = y
    for _ in range(LENGTH):
        z = z * 1.0001
    middle = y.grad_fn
    del y, z
    assert first() is not None
    del middle
    assert first() is None
    x, y, first = chain(STEPS["number"])
    with torch.no_grad():
        y.view(2)[:1].add_(1)
    for _ in range(LENGTH // 10):
        y[:1].mul_(1.0001)
    del y
    assert first() is None
    done.append(True)

done = []
gc.disable()
threading.stack_size(256 << 10)
thread = threading.Thread(target=run)
thread.start()
thread.join()
assert done and not graph._freeing.waiting
"""


@pytest.mark.parametrize("as_in_3_13", [False, True])
def test_a_long_chain_is_freed_on_a_small_stack(as_in_3_13: bool) -> None:
    run = subprocess.run(
        [sys.executable, "-c", (AS_IN_3_13 if as_in_3_13 else "") + PROGRAM], capture_output=True, text=True,
        timeout=200, env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    assert run.returncode == 0 and not run.stderr, run.stderr[-3000:]
