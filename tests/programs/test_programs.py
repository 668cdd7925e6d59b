"""Ordinary PyTorch programs have the same output and values with tinytorch as with PyTorch."""

from __future__ import annotations

import builtins
from pathlib import Path

import pytest

from tests.oracle import needs_oracle
from tests.programs.runner import SCRIPTS, compare, compare_lines, importer, run


@needs_oracle
@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.stem)
def test_program(script: Path) -> None:
    compare(run(script, "tinytorch"), run(script, "torch"))


#: Modules that programs import, with a name that must be in each.
IMPORTS = """
torch.autograd.anomaly_mode detect_anomaly|torch.autograd.function Function|torch.autograd.variable Variable
torch.autograd.functional hessian|torch.cuda.amp GradScaler|torch.distributions.normal Normal
torch.distributions.kl kl_divergence|torch.nn.functional relu|torch.nn.init xavier_uniform_
torch.nn.modules.activation MultiheadAttention|torch.nn.modules.batchnorm _BatchNorm|torch.nn.modules.conv _ConvNd
torch.nn.modules.loss _Loss|torch.nn.modules.module Module|torch.nn.modules.utils _pair|torch.nn.parallel DataParallel
torch.nn.parameter Parameter|torch.nn.utils clip_grad_norm_|torch.nn.utils.rnn pad_sequence
torch.nn.utils.parametrizations weight_norm|torch.optim.lr_scheduler LRScheduler|torch.optim.optimizer Optimizer
torch.optim.swa_utils AveragedModel|torch.random fork_rng|torch.utils.checkpoint checkpoint
torch.utils.data.dataloader default_collate|torch.utils.data.dataset Dataset|torch.utils.data.sampler Sampler
"""


@pytest.mark.parametrize("line", IMPORTS.strip().replace("\n", "|").split("|"))
def test_imports(line: str) -> None:
    module, name = line.split()
    names: dict[str, object] = {}
    hook = {**vars(builtins), "__import__": importer("tinytorch")}
    program = f"import torch\nimport {module} as whole\nfrom {module} import {name}\n"
    exec(program, {"__builtins__": hook}, names)
    assert names[name] is getattr(names["whole"], name)


def test_the_comparison_sees_differences() -> None:
    same = ["loss 0.12345 of 10", "tensor([1., nan])"]
    compare_lines(["loss 0.12346 of 10", "tensor([1., nan])"], same)
    for other in ("loss 0.12355 of 10", "loss 0.12345 of 11", "Loss 0.12345 of 10"):
        with pytest.raises(AssertionError):
            compare_lines([other, same[1]], same)
    with pytest.raises(AssertionError):
        compare_lines(same[:1], same)
