"""The doctor: a program that runs is watched, and what keeps a network from learning is found and proven.

`python -m tinytorch doctor train.py` and `with torch.inspect.Doctor(model, optimizer):` observe training. `watch`
replaces methods of Module, Tensor, Optimizer and DataLoader while it is installed; `trace` (a mode) keeps the ops of
some steps. `checks` has a class for each mistake. `replay` keeps copies of the process (`fork`), which take steps again
with one of `patches`; `judging` compares them. `doctor` and `finding` report.
"""

from tinytorch.inspect.doctor.doctor import Doctor, Stopped
from tinytorch.inspect.doctor.finding import Finding

__all__ = ["Doctor", "Finding", "Stopped"]
