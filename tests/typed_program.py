"""A user's program with types, which scripts/check_package checks by mypy and pyright against the installed wheel.

Lines on which both must report an error have ignore comments; both are configured to report unnecessary ones.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from typing import assert_type

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


@tinytorch.no_grad()
def results(x: Tensor) -> Tensor:
    assert_type(tinytorch.rand(3), Tensor)
    assert_type(tinytorch.zeros_like(x), Tensor)
    assert_type(tinytorch.sum(x), Tensor)
    assert_type(tinytorch.where(x > 0, x, 0), Tensor)
    assert_type(tinytorch.equal(x, x), bool)
    assert_type(tinytorch.linalg.inv(x), Tensor)
    assert_type(nn.functional.relu(x), Tensor)
    assert_type((x.size(), x.size(0)), tuple[tinytorch.Size, int])
    largest, places = tinytorch.topk(x, 2)
    assert_type((tinytorch.max(x, 1).indices, largest, places), tuple[Tensor, Tensor, Tensor])
    shape: tuple[int, ...] = x.numpy().shape
    return tinytorch.max(x) + len(shape)


def mistakes() -> None:
    assert_type(results(tinytorch.ones(2, 3)), Tensor)
    tinytorch.rand(2, dtyp=1)  # type: ignore[call-arg]
    nn.LSTM(3, hidden=4)  # type: ignore[call-arg]
    nn.Linear("a", 2)  # type: ignore[arg-type]
    optim.SGD(Line(3).parameters(), lr="fast")  # type: ignore[arg-type]
    tinytorch.ones(2).no_such_method()  # type: ignore[attr-defined]
    number: float = tinytorch.ones(2)  # type: ignore[assignment]
    print(number)
