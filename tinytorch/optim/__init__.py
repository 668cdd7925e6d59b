"""Optimizers, which update parameters from their gradients. A new one is a file here: see `optimizer.py`.

Example:
    >>> model = torch.nn.Linear(3, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> loss = model(torch.ones(2, 3)).square().mean()
    >>> loss.backward()
    >>> optimizer.step()
    >>> optimizer.zero_grad()
"""

from tinytorch.optim import lr_scheduler as lr_scheduler
from tinytorch.optim import swa_utils as swa_utils
from tinytorch.optim.adadelta import Adadelta
from tinytorch.optim.adafactor import Adafactor
from tinytorch.optim.adagrad import Adagrad
from tinytorch.optim.adam import Adam
from tinytorch.optim.adamax import Adamax
from tinytorch.optim.adamw import AdamW
from tinytorch.optim.asgd import ASGD
from tinytorch.optim.lbfgs import LBFGS
from tinytorch.optim.muon import Muon
from tinytorch.optim.nadam import NAdam
from tinytorch.optim.optimizer import Optimizer
from tinytorch.optim.radam import RAdam
from tinytorch.optim.rmsprop import RMSprop
from tinytorch.optim.rprop import Rprop
from tinytorch.optim.sgd import SGD
from tinytorch.optim.sparse_adam import SparseAdam

__traced_as__ = "stateful"  # by `torch.compile`

__all__ = [
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam", "lr_scheduler", "swa_utils",
]  # fmt: skip
