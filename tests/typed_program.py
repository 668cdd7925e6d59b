"""A user's program with types, which scripts/check_package checks by mypy and pyright against the installed wheel.

Lines on which both must report an error have ignore comments; both are configured to report unnecessary ones.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

import tinytorch
from tinytorch import Tensor, nn, optim
from tinytorch.utils.data import DataLoader, TensorDataset


class Line(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.line = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.line(x)
        return y


def train() -> float:
    x: tinytorch.Tensor = tinytorch.ones(2, 3, dtype=tinytorch.float64)
    model = Line(3).to(x.device, dtype=x.dtype)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loss = tinytorch.zeros(())
    for inputs, targets in DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=2):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
    last: float = loss.item()
    return last


def mistakes() -> None:
    nn.Linear("a", 2)  # type: ignore[arg-type]
    optim.SGD(Line(3).parameters(), lr="fast")  # type: ignore[arg-type]
    tinytorch.ones(2).no_such_method()  # type: ignore[attr-defined]
    number: float = tinytorch.ones(2)  # type: ignore[assignment]
    print(number)
