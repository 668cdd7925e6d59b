"""Optimizers: what updates parameters from their gradients.

Example:
    >>> import tinytorch as torch
    >>> model = torch.nn.Linear(3, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> loss = model(torch.ones(2, 3)).square().mean()
    >>> loss.backward()
    >>> optimizer.step()
    >>> optimizer.zero_grad()
"""

from tinytorch.optim.adam import Adam
from tinytorch.optim.adamw import AdamW
from tinytorch.optim.optimizer import Optimizer
from tinytorch.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
