"""`inspect.nonfinite` names the op that made the first number that is not finite, and is silent where it should be."""

from __future__ import annotations

import pickle
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle
from tests.oracle import torch as pytorch
from tinytorch import inspect, nn
from tinytorch.inspect.finite import NonFinite, is_finite
from tinytorch.utils.checkpoint import checkpoint

torch = tinytorch


def origin_of(program: Any, **options: Any) -> NonFinite:
    """Return the origin of the error that a program raises."""
    with pytest.raises(inspect.NonFiniteError) as caught, inspect.nonfinite(**options):
        program()
    return caught.value.origin


def findings(program: Any, **options: Any) -> list[NonFinite]:
    """Return all findings in a program."""
    with inspect.nonfinite("record", **options) as seen:
        program()
    assert bool(seen) == (not seen.found)
    return seen.found


def line_with(text: str) -> int:
    """Return the number of the first line of this file that has a text."""
    lines = Path(__file__).read_text("utf-8").split("\n")
    return 1 + next(k for k, line in enumerate(lines) if text in line and "line_with" not in line)


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        scores = self.fc(x)
        return scores.log()  # (the logarithm of scores)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.heads = nn.ModuleList([nn.Identity(), Head()])

    def forward(self, x: Any) -> Any:
        return self.heads[1](self.body(x))


# What is named ------------------------------------------------------------------------------------


def test_the_op_the_values_the_module_and_the_line_of_a_forward_pass() -> None:
    torch.manual_seed(0)
    net = Net()
    found = origin_of(lambda: net(torch.randn(5, 4)))
    assert (found.phase, found.op, found.kind, found.size) == ("forward", "log", "nan", 15)
    assert found.module == "heads.1: Head"
    assert found.line is not None and found.line.number == line_with("the logarithm of scores")
    assert found.line.text.startswith("return scores.log()")
    element = found.elements[0]
    assert np.isnan(element.result) and element.inputs["input"] < 0
    text = str(found)
    for part in ("log gives nan", "heads.1: Head", "test_finite.py:", "clamp_min"):
        assert part in text


def test_a_layer_of_a_sequential_model_is_named() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    with torch.no_grad():
        net[1].weight.fill_(3e38)
        net[0].weight.fill_(1.0)
    found = origin_of(lambda: net(torch.ones(1, 2) * 4))
    assert (found.op, found.kind, found.module) == ("linear", "inf", "1: Linear")
    assert found.elements[0].inputs["weight"] == (pytest.approx(3e38), pytest.approx(3e38))


def test_the_backward_of_an_op_with_the_line_of_its_forward_pass() -> None:
    x = torch.tensor([4.0, 0.0], requires_grad=True)

    def program() -> None:
        y = x.sqrt()  # its derivative is infinite at 0
        y.sum().backward()  # (the backward pass begins)

    found = origin_of(program)
    assert (found.phase, found.op, found.node, found.kind) == ("backward", "sqrt", "SqrtBackward0", "inf")
    assert found.line is not None and found.line.number == line_with("its derivative is infinite at 0")
    assert found.called is not None and found.called.number == line_with("(the backward pass begins)")
    assert found.elements[0].position == (1,)
    assert found.elements[0].inputs == {"gradient": 1.0, "result": 0.0}
    assert "1e-12" in found.remedy


def test_the_module_of_a_backward() -> None:
    class Root(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.abs().sqrt()

    model = nn.Sequential(nn.Linear(2, 2), Root())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    found = origin_of(lambda: model(torch.ones(1, 2)).sum().backward())
    assert (found.node, found.module) == ("SqrtBackward0", "1: Root")


def test_where_is_named_for_the_branch_that_it_does_not_select() -> None:
    x = torch.tensor([1.0, 0.0], requires_grad=True)

    def program() -> None:
        root = x.sqrt()
        y = torch.where(x > 0, root, x)  # selects the other branch at 0
        y.sum().backward()

    found = origin_of(program)
    assert (found.phase, found.node, found.kind) == ("backward", "SqrtBackward0", "nan")
    assert found.elements[0].inputs == {"gradient": 0.0, "result": 0.0}
    assert f"`where` at test_finite.py:{line_with('selects the other branch at 0')}" in found.remedy
    x.grad = None
    fixed = torch.where(x > 0, x, 1.0)
    assert not findings(lambda: torch.where(x > 0, fixed.sqrt(), x).sum().backward())


def test_a_sum_of_gradients_that_overflows() -> None:
    x = torch.ones(1, requires_grad=True)

    def program() -> None:
        y = x * 1
        (y * 3e38 / 1e38 + y * 3e38 / 1e38).sum().backward(torch.tensor(1e38))

    found = origin_of(program)
    assert (found.phase, found.kind) == ("sum", "inf")


def test_the_code_of_a_function_forward_and_backward() -> None:
    class Forward(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.log()  # in the forward of a Function

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    class Backward(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g / ctx.saved_tensors[0]  # in the backward of a Function

    x = torch.zeros(2, requires_grad=True)
    found = origin_of(lambda: Forward.apply(x))
    assert found.op == "log" and found.line is not None
    assert found.line.number == line_with("in the forward of a Function")
    with torch.autograd.graph.save_on_cpu():  # (a mode outside)
        assert origin_of(lambda: Forward.apply(x)).op == "log"
    found = origin_of(lambda: Backward.apply(x).sum().backward())
    assert found.op == "div" and found.line is not None
    assert found.line.number == line_with("in the backward of a Function")


def test_a_gradient_that_numpy_computes_in_a_function() -> None:
    class Numpy(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return torch.from_numpy(np.full(g.shape, np.inf, np.float32))

    x = torch.ones(2, requires_grad=True)
    found = origin_of(lambda: Numpy.apply(x).sum().backward())
    assert (found.phase, found.node) == ("backward", "NumpyBackward")


def test_second_derivatives() -> None:
    x = torch.tensor(0.0, requires_grad=True)

    def program() -> None:
        (g,) = torch.autograd.grad(x.pow(1.5), x, create_graph=True)
        torch.autograd.grad(g, x)  # -> the derivative of the square root at 0

    found = origin_of(program)
    assert found.phase == "backward" and found.kind == "inf"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_dtypes(dtype: str) -> None:
    kind = getattr(torch, dtype)
    try:
        x = torch.tensor([300.0, 2.0], dtype=kind)
    except ImportError:
        pytest.skip("bfloat16 needs the extra bf16")
    largest = float(torch.finfo(kind).max)
    assert not findings(lambda: x * 2)
    found = origin_of(lambda: x * largest)
    assert (found.op, found.kind, found.wrong) == ("mul", "inf", 2)
    if dtype == "float16":
        assert "65504" in found.remedy


def test_complex_numbers() -> None:
    z = torch.tensor([1 + 1j, 0j])
    assert not findings(lambda: z * 2)
    assert origin_of(lambda: 1 / z).kind.startswith("nan")


def test_a_write_in_place_and_through_a_view() -> None:
    x = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
    found = origin_of(lambda: x[0].log_())
    assert (found.op, found.kind, found.elements[0].inputs["input"]) == ("log", "-inf", 0.0)
    large = torch.zeros(2**17)
    found = origin_of(lambda: large.log_())
    assert found.kind == "-inf"
    assert not findings(lambda: large.exp_())  # what is overwritten was not finite, what is written is


def test_an_element_that_python_writes_is_no_finding_but_its_consequence_is() -> None:
    x = torch.ones(3)

    def program() -> None:
        x[1] = torch.inf
        (x - x).sum()

    found = origin_of(program)
    assert (found.op, found.kind) == ("sub", "nan")
    assert found.elements[0].inputs == {"input": torch.inf, "other": torch.inf, "alpha": 1} or (
        found.elements[0].inputs["input"] == torch.inf
    )


def test_numbers_that_come_in_with_the_data_or_a_parameter() -> None:
    weight = nn.Parameter(torch.ones(2))
    data = torch.tensor([1.0, torch.nan])

    def program() -> None:
        loss = (data * weight).sum()  # the data comes in
        loss.backward()

    found = origin_of(program)
    assert (found.phase, found.op, found.kind, found.argument) == ("input", "mul", "nan", "argument input (data)")
    assert found.line is not None and found.line.number == line_with("the data comes in")
    model = nn.Linear(2, 1)
    with torch.no_grad():
        model.bias.fill_(torch.inf)
    found = origin_of(lambda: model(torch.ones(1, 2)).sum().backward())
    assert (found.phase, found.op, found.kind, found.argument) == ("input", "linear", "inf", "argument bias (bias)")
    assert "parameter" in found.remedy


# Where it is silent -------------------------------------------------------------------------------


def test_masks_of_infinity_and_of_nan_on_purpose() -> None:
    scores = torch.randn(3, 3, requires_grad=True)
    allowed = torch.ones(3, 3).tril().bool()
    mask = torch.full((3, 3), -torch.inf).triu(1)
    data = torch.tensor([1.0, torch.nan, 2.0])
    weight = torch.ones(3, requires_grad=True)

    def program() -> None:
        scores.masked_fill(~allowed, -torch.inf).softmax(-1).sum().backward()
        (scores + mask).softmax(-1).pow(2).sum().backward()
        torch.where(allowed, scores, -torch.inf).logsumexp(-1).sum().backward()
        (data * weight)[~data.isnan()].sum().backward()
        (data.nan_to_num() * weight).sum().backward()
        nn.functional.scaled_dot_product_attention(
            scores[None], scores[None], scores[None], attn_mask=mask[None]
        ).sum().backward()
        torch.full((2,), torch.nan).isnan()
        torch.empty(3).fill_(torch.inf).clamp(max=1.0)

    assert not findings(program)


@pytest.mark.filterwarnings("ignore:std")
def test_remedies() -> None:
    x = torch.tensor([[1.0, 0.0]])
    for program, words in (
        (lambda: (x * 1000).exp(), "log_softmax"),
        (lambda: x.log(), "clamp_min"),
        (lambda: (x - 1).sqrt(), "sqrt needs numbers from 0"),
        (lambda: x.std(0), "correction=0"),
        (lambda: 1 / x, "a division by 0"),
        (lambda: x * torch.inf, "an argument is infinite"),
    ):
        found = origin_of(program)
        assert words in found.remedy, found
    with pytest.raises(inspect.NonFiniteError) as caught, inspect.nonfinite():
        layer = nn.LSTM(2, 2)
        torch.nn.init.constant_(layer.weight_ih_l0, torch.nan)
        layer(x)[0].sum().backward()
    assert str(caught.value).startswith("argument w_ih (weight_ih_l0) of lstm_layer has nan")


def test_a_mask_that_leaves_nothing_is_a_finding() -> None:
    scores = torch.zeros(2, 2)
    found = origin_of(lambda: scores.masked_fill(torch.ones(2, 2).bool(), -torch.inf).softmax(-1))
    assert (found.op, found.kind) == ("softmax", "nan") and "infinite" in found.remedy


def test_infinities_may_be_allowed() -> None:
    x = torch.tensor([1000.0, 0.0])
    assert origin_of(lambda: x.exp()).kind == "inf"
    assert not findings(lambda: 1 / (1 + x.exp()), allow_inf=True)
    assert origin_of(lambda: x.exp() - x.exp(), allow_inf=True).op == "sub"


def test_empty_and_integer_tensors() -> None:
    def program() -> None:
        torch.empty(0).exp().sum()
        torch.empty(0, 3).sum(0)
        (torch.arange(3) * 2**62).sum()
        torch.tensor([True]).any()

    assert not findings(program)


def test_large_finite_numbers_whose_squares_overflow() -> None:
    x = torch.full((100,), 3e38)
    assert not findings(lambda: (-x).abs())
    assert is_finite(np.array([1e300, -1e300])) and not is_finite(np.array([1.0, np.nan]))
    assert is_finite(np.broadcast_to(np.float32(1), (3, 4)))
    assert not is_finite(np.broadcast_to(np.array([1, np.inf], np.float32), (3, 2)).T)


def test_a_step_that_a_scaler_skips() -> None:
    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)

    def program() -> None:
        loss = (weight.half() * 300).sum().float()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    with inspect.nonfinite():
        program()
    assert weight.tolist() == [1, 1, 1] and scaler.get_scale() == 2.0**15
    scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
    weight = torch.full((3,), 3e4, requires_grad=True)
    found = origin_of(lambda: scaler.scale((weight.half() * weight.half()).sum().float()).backward())
    assert found.op == "mul" and found.phase == "forward"


def test_a_loss_that_is_skipped() -> None:
    """A loop that skips a bad batch goes on with `action="record"`, and every bad batch is found."""
    weight = torch.ones(2, requires_grad=True)
    batches = [torch.tensor([1.0, 2.0]), torch.tensor([0.0, 1.0]), torch.tensor([2.0, 1.0]), torch.tensor([-1.0, 1.0])]
    trained = 0
    with inspect.nonfinite("record") as seen:
        for batch in batches:
            loss = (weight * batch.log()).sum()
            if not torch.isfinite(loss):
                continue
            loss.backward()
            trained += 1
    assert trained == 2
    assert [(found.op, found.kind) for found in seen.found] == [("log", "-inf"), ("log", "nan")]
    assert weight.grad is not None and torch.isfinite(weight.grad).all()


def test_warnings() -> None:
    with pytest.warns(RuntimeWarning, match="log gives nan"), inspect.nonfinite("warn"):
        assert torch.tensor(-1.0).log().isnan()


# The programs of pytorch#160016 -------------------------------------------------------------------


def nan_that_backward_does_not_show(lib: Any) -> Any:
    """The loss is NaN, and its gradient is finite: nothing in the backward pass tells."""
    x = lib.tensor([-1.0, 2.0], requires_grad=True)
    y = x.log()
    (y + 0 * x).sum().backward()
    return x.grad


def infinity_that_the_optimizer_makes_nan(lib: Any) -> Any:
    """The gradient overflows: NaN appears in the optimizer, far from the op."""
    x = lib.tensor([1e-30], requires_grad=True)
    optimizer = lib.optim.Adam([x])
    (1 / x.abs() * 1e-10).sum().backward()
    optimizer.step()
    return x


PROGRAMS = {
    nan_that_backward_does_not_show: ("forward", "log", "nan"),
    infinity_that_the_optimizer_makes_nan: ("backward", "reciprocal", "-inf"),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs_in_which_anomaly_detection_finds_nothing(program: Any) -> None:
    found = origin_of(lambda: program(torch))
    assert (found.phase, found.op, found.kind) == PROGRAMS[program]
    assert found.line is not None and found.line.function == program.__name__


@needs_oracle
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_pytorch_finds_nothing_in_these_programs(program: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytorch.autograd.detect_anomaly():
            program(pytorch)


# With other features ------------------------------------------------------------------------------


def test_compiled_functions_run_op_by_op_inside() -> None:
    @torch.compile
    def f(x: Any) -> Any:
        return x.exp() * 2

    x = torch.tensor([1.0, 1000.0])
    f(x), f(x)
    assert origin_of(lambda: f(x)).op == "exp"


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints(reentrant: bool) -> None:
    x = torch.tensor([4.0, 0.0], requires_grad=True)

    def body(x: Any) -> Any:
        return (x * 1).sqrt()

    found = origin_of(lambda: checkpoint(body, x, use_reentrant=reentrant).sum().backward())
    assert (found.phase, found.node) == ("backward", "SqrtBackward0")
    found = origin_of(lambda: checkpoint(lambda x: x.log(), x, use_reentrant=reentrant))
    assert (found.phase, found.op) == ("forward", "log")


def test_vmap_and_functional_derivatives() -> None:
    x = torch.tensor([1.0, 0.0])
    assert origin_of(lambda: torch.func.vmap(lambda x: x.log())(x)).op == "log"
    assert origin_of(lambda: torch.func.grad(lambda x: x.sqrt().sum())(x)).node == "SqrtBackward0"


def test_sparse_tensors_are_not_looked_at() -> None:
    dense = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    assert not findings(lambda: (dense.to_sparse() @ torch.ones(2, 2)).sum())


def test_it_may_be_entered_again_and_inside_of_anomaly_detection() -> None:
    seen = inspect.nonfinite("record")
    for _ in range(2):
        with seen:
            torch.tensor(-1.0).log()
    assert len(seen.found) == 2
    with seen, pytest.raises(RuntimeError, match="already on"), seen:
        pass
    torch.tensor(-1.0).log()
    assert len(seen.found) == 2
    for action, got in [("stop", "'stop'"), (torch.ones(99), "Tensor")]:
        with pytest.raises(ValueError, match=f"action should be .* but got {got}$"):
            inspect.nonfinite(action)


def test_only_the_thread_that_enters_it_is_watched() -> None:
    results: list[Any] = []

    def other() -> None:
        results.append(torch.tensor(-1.0).log().isnan().item())

    def watched() -> None:
        results.append(origin_of(lambda: torch.tensor(-1.0).log()).op)

    with inspect.nonfinite("record") as seen:
        for target in (other, watched):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
    assert results == [True, "log"] and not seen.found


def test_the_error_can_be_pickled() -> None:
    with pytest.raises(inspect.NonFiniteError) as caught, inspect.nonfinite():
        torch.tensor(-1.0).log()
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, inspect.NonFiniteError) and isinstance(again, RuntimeError)
    assert str(again) == str(caught.value)


def test_results_are_the_same_inside() -> None:
    def train() -> Any:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            x = torch.randn(16, 4)
            ((model(x) - x.sum(1, keepdim=True)) ** 2).mean().backward()
            optimizer.step()
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    plain = train()
    with inspect.nonfinite():
        watched = train()
    assert torch.equal(plain, watched)


# Anomaly detection --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_anomaly_detection_adds_the_values_and_the_line() -> None:
    x = torch.tensor([1.0, 0.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="SqrtBackward0") as e, torch.autograd.detect_anomaly():
        torch.where(x > 0, x.sqrt(), x).sum().backward()
    assert str(e.value) == "Function 'SqrtBackward0' returned nan values in its 0th output."
    note = e.value.__notes__[0]
    assert "`where` at test_finite.py" in note
    assert "result[1] = nan from gradient = 0.0, result = 0.0" in note and "test_finite.py" in note
    x = torch.tensor([-1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="MulBackward0") as e, torch.autograd.detect_anomaly():
        (x.sqrt() * x).backward()
    note = e.value.__notes__[0]
    assert "sqrt gives nan" in note and "input = -1.0" in note
