"""The doctor: a program that runs is watched, and what keeps a network from learning is found and proven.

`python -m tinytorch doctor train.py` and `with torch.inspect.Doctor(model, optimizer):` observe training at the seams
that all training loops have (`watch`, `trace`), suspect (`checks`), take steps again with a mistake undone (`replay`,
`patches`, `judging`), and report (`doctor`, `finding`).
"""

from tinytorch.inspect.doctor.doctor import Doctor, Stopped
from tinytorch.inspect.doctor.finding import Finding

__all__ = ["Doctor", "Finding", "Stopped"]
