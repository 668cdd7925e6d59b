"""The doctor: a program that runs is watched, and what keeps a network from learning is found and proven.

`python -m tinytorch doctor train.py` and `with torch.inspect.Doctor(model, optimizer):` observe training. `watch`
listens by hooks, `trace` (a mode) keeps the ops of some steps. `checks` has facts and trials, `causes.txt` what is said
of each cause, `limits` the thresholds. `replay` keeps copies of the process (`fork`), which take steps again with one
of the changes of `patches`; `judging` compares them, `probes` looks at one pass. `doctor` and `finding` report.
"""

from tinytorch.inspect.doctor.doctor import Doctor, Stopped
from tinytorch.inspect.doctor.finding import Finding

__all__ = ["Doctor", "Finding", "Stopped"]
