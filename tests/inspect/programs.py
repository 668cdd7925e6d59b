"""Programs in which a parameter has no gradient, each for another reason.

Each function returns a loss, the model, and the name of the parameter; the line with "<-" is the one to be named.
"""

from __future__ import annotations

import copy
from typing import Any

import tinytorch as torch
from tinytorch import nn
from tinytorch.utils.checkpoint import checkpoint

X = torch.linspace(-1, 1, 12).reshape(4, 3)


class Net(nn.Module):
    """Two layers; derived classes change `forward`."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 1)

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x).tanh())


def frozen() -> Any:
    model = Net()
    model.first.weight.requires_grad_(False)  # <-
    loss = model(X).sum()
    loss.backward()
    return loss, model, "first.weight"


def cut_by_detach() -> Any:
    class Cut(Net):
        def forward(self, x: Any) -> Any:
            h = self.first(x)
            h = h.detach()  # <-
            return self.second(h.tanh())

    model = Cut()
    loss = model(X).sum()
    loss.backward()
    return loss, model, "first.weight"


def cut_by_data() -> Any:
    class Cut(Net):
        def forward(self, x: Any) -> Any:
            return self.second(self.first(x).data)  # <-

    model = Cut()
    loss = model(X).sum()
    loss.backward()
    return loss, model, "first.bias"


def computed_under_no_grad() -> Any:
    class Cut(Net):
        def forward(self, x: Any) -> Any:
            with torch.no_grad():  # <-
                h = self.first(x).tanh()
            return self.second(h)

    model = Cut()
    loss = model(X).sum()
    loss.backward()
    return loss, model, "first.weight"


def computed_under_a_decorator() -> Any:
    class Cut(Net):
        @torch.no_grad()  # <-
        def features(self, x: Any) -> Any:
            return self.first(x).tanh()

        def forward(self, x: Any) -> Any:
            return self.second(self.features(x))

    model = Cut()
    loss = model(X).sum()
    loss.backward()
    return loss, model, "first.weight"


def computed_in_inference_mode() -> Any:
    model = Net()
    with torch.inference_mode():  # <-
        h = model.first(X)
    loss = model.second(h.clone()).sum()
    loss.backward()
    return loss, model, "first.weight"


def through_item() -> Any:
    model = Net()
    scale = model.first(X).mean().item()  # <-
    loss = model.second(X * torch.tensor(scale)).sum()
    loss.backward()
    return loss, model, "first.weight"


def through_numpy() -> Any:
    model = Net()
    h = model.first(X).numpy(force=True)  # <-
    loss = model.second(torch.from_numpy(h)).sum()
    loss.backward()
    return loss, model, "first.weight"


def a_loss_that_is_copied() -> Any:
    model = Net()
    losses = [model(X).sum(), model(X).mean()]
    loss = torch.tensor(losses, requires_grad=True).sum()  # <-
    loss.backward()
    return loss, model, "second.weight"


def through_argmax() -> Any:
    class Cut(Net):
        def forward(self, x: Any) -> Any:
            choice = self.first(x).argmax(1)  # <-
            return self.second(nn.functional.one_hot(choice, 3).float())

    model = Cut()
    loss = model(X).sum()
    loss.backward()
    return loss, model, "first.weight"


def through_a_comparison() -> Any:
    model = Net()
    correct = (model.first(X) > 0).float()  # <-
    loss = model.second(correct).sum()
    loss.backward()
    return loss, model, "first.bias"


def never_used() -> Any:
    class Unused(Net):
        def __init__(self) -> None:
            super().__init__()
            self.third = nn.Linear(3, 3)  # <-

    model = Unused()
    loss = model(X).sum()
    loss.backward()
    return loss, model, "third.weight"


def used_and_discarded() -> Any:
    class Discards(Net):
        def forward(self, x: Any) -> Any:
            h = self.first(x)
            h.tanh()  # <-
            return self.second(x)

    model = Discards()
    loss = model(X).sum()
    loss.backward()
    return loss, model, "first.weight"


def without_backward() -> Any:
    model = Net()
    loss = model(X).sum()
    return loss, model, "first.weight"


def cleared_after_backward() -> Any:
    model = Net()
    loss = model(X).sum()
    loss.backward()  # <-
    model.zero_grad()
    return loss, model, "first.weight"


def gradients_that_are_returned() -> Any:
    model = Net()
    loss = model(X).sum()
    torch.autograd.grad(loss, list(model.parameters()))  # <-
    return loss, model, "first.weight"


def limited_to_inputs() -> Any:
    model = Net()
    loss = model(X).sum()
    loss.backward(inputs=[model.second.weight])  # <-
    return loss, model, "first.weight"


def a_result() -> Any:
    weight = torch.ones(3, requires_grad=True) * 0.1
    loss = (X * weight).sum()
    loss.backward()
    return loss, {"weight": weight}, "weight"


def integers() -> Any:
    table = torch.zeros(3, dtype=torch.int64)
    weight = torch.ones(3, requires_grad=True)
    loss = (weight * table).sum()
    loss.backward()
    return loss, {"table": table}, "table"


def an_inference_tensor() -> Any:
    with torch.inference_mode():
        weight = torch.ones(3)
    other = torch.ones(3, requires_grad=True)
    loss = (other + weight).sum()
    loss.backward()
    return loss, {"weight": weight}, "weight"


def a_function_without_gradient() -> Any:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None

    model = Net()
    loss = model.second(Double.apply(model.first(X))).sum()  # <-
    loss.backward()
    return loss, model, "first.weight"


def required_too_late() -> Any:
    weight = torch.ones(3)
    y = X * weight  # <-
    weight.requires_grad_()
    other = torch.ones(4, 3, requires_grad=True)
    loss = (y * other).sum()
    loss.backward()
    return loss, {"weight": weight}, "weight"


def of_a_copy() -> Any:
    model = Net()
    trained = copy.deepcopy(model)
    loss = trained(X).sum()
    loss.backward()
    return loss, model, "first.weight"


def in_a_reentrant_checkpoint() -> Any:
    model = Net()
    h = checkpoint(model.first, X, use_reentrant=True)  # <-
    loss = model.second(h).sum()
    loss.backward()
    return loss, model, "first.weight"


#: By program, the code of the cause when it is watched, and when it is explained afterwards.
PROGRAMS = {
    frozen: ("frozen", "frozen"),
    cut_by_detach: ("detach", "detach"),
    cut_by_data: ("data", "data"),
    computed_under_no_grad: ("no_grad", "no_grad"),
    computed_under_a_decorator: ("no_grad", None),
    computed_in_inference_mode: ("inference_mode", None),
    through_item: ("read", None),
    through_numpy: ("read", None),
    a_loss_that_is_copied: ("copied", None),
    through_argmax: ("not differentiable", "not differentiable"),
    through_a_comparison: ("not differentiable", None),
    never_used: ("unused", "unused"),
    used_and_discarded: ("discarded", None),
    without_backward: ("no backward", "no backward"),
    cleared_after_backward: ("cleared", "cleared"),
    gradients_that_are_returned: ("autograd.grad", None),
    limited_to_inputs: ("inputs", None),
    a_result: ("non-leaf", "non-leaf"),
    integers: ("integer", "integer"),
    an_inference_tensor: ("inference tensor", "inference tensor"),
    a_function_without_gradient: ("returns None", "returns None"),
    required_too_late: ("did not require grad", None),
    of_a_copy: ("replaced", "replaced"),
    in_a_reentrant_checkpoint: ("no_grad", None),
}
