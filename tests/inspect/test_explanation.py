"""`inspect.explain`: why a gradient is None or zero, what a graph keeps, what a model or optimizer trains."""

from __future__ import annotations

import copy
import html.parser
import re
from pathlib import Path
from typing import Any

import pytest

import tinytorch as torch
from tests.inspect import programs
from tests.inspect.programs import PROGRAMS, Net, X
from tinytorch import inspect, nn
from tinytorch.inspect.source import is_mentioned

F = nn.functional
SOURCE = Path(programs.__file__).read_text("utf-8").split("\n")


def marked(program: Any) -> int | None:
    """Return the number of the line of a program that has the mark."""
    first = program.__code__.co_firstlineno
    for number, line in enumerate(SOURCE[first:], first + 1):
        if line.startswith("def "):
            break
        if line.endswith("# <-"):
            return number
    return None


@pytest.mark.filterwarnings("ignore:To copy construct", "ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_why_a_gradient_is_none(program: Any) -> None:
    """Watched: the cause and the line are right, and certain."""
    with inspect.watch() as seen:
        loss, model, name = program()
    story = seen.explain(loss, model)[name]
    assert story.gradient == "none" and story.norm is None
    assert (story.cause.code, story.cause.certain) == (PROGRAMS[program][0], True)
    line = marked(program)
    if line is not None:
        assert story.cause.line is not None
        assert (Path(story.cause.line.file), story.cause.line.number) == (Path(programs.__file__), line)
        assert f"programs.py:{line}" in str(story)


@pytest.mark.filterwarnings("ignore:To copy construct", "ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_what_can_be_said_afterwards(program: Any) -> None:
    """Not watched: the graph and the sources tell the cause, or possible lines; what is certain is right."""
    loss, model, name = program()
    story = inspect.explain(loss, model)[name]
    expected = PROGRAMS[program][1]
    if expected is not None:
        assert story.cause.code == expected
    elif story.cause.certain:
        assert story.cause.code == "unreached"
    line = marked(program)
    named = [story.cause.line, *[each.line for each in story.possible]]
    if expected in ("detach", "data", "no_grad", "not differentiable", "unused"):
        assert line in [each.number for each in named if each is not None]


def test_a_function_is_watched_while_it_takes_a_step() -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> float:
        optimizer.zero_grad()
        loss = model.second(model.first(X).detach()).pow(2).mean()  # the line of the cut
        loss.backward()
        optimizer.step()
        return loss.item()

    explained = inspect.explain(step, model)
    assert explained.watched and explained.title.startswith("the loss of the last backward pass: float32 ()")
    assert explained["first.weight"].cause.code == "detach"
    assert "# the line of the cut" in str(explained)
    assert explained["second.weight"].gradient == "finite" and explained["second.weight"].norm > 0
    assert explained["second.weight"].cause.reason == ""
    assert explained.modules == ["second: Linear"]
    found = inspect.explain(step)  # the model is found in the variables of this function
    assert [story.name for story in found.parameters] == [story.name for story in explained.parameters]
    with pytest.raises(KeyError):
        explained["third.weight"]


def test_a_gradient_of_another_backward_pass() -> None:
    model = Net()
    model(X).sum().backward()
    loss = model.second(X).sum()
    story = inspect.explain(loss, model)["first.weight"]
    assert (story.gradient, story.reached, story.cause.code) == ("finite", False, "other backward")


def test_indices_and_numbers_that_python_computes_with() -> None:
    model = Net()

    def indices() -> Any:
        return F.cross_entropy(model.second(X).expand(4, 3), model.first(X).max(1).indices % 3)

    story = inspect.explain(indices, model)["first.weight"]
    assert story.cause.code == "not differentiable" and "`max`" in story.cause.reason

    def factor() -> Any:
        return model.second(X).sum() * float(model.first(X).sum().detach())

    story = inspect.explain(factor, model)["first.weight"]
    assert story.cause.code == "read" and "float()" in story.cause.reason


def test_copies_into_a_buffer_carry_gradients_and_no_grad_ends_them() -> None:
    model = Net()

    def step(recorded: bool) -> Any:
        h = torch.zeros(4, 3)
        with torch.set_grad_enabled(recorded):
            h[:] = model.first(X)
        return model.second(h).sum()

    assert inspect.explain(lambda: step(True), model)["first.weight"].cause.code == "no backward"
    story = inspect.explain(lambda: step(False), model)["first.weight"]
    assert story.cause.code == "no_grad" and story.cause.line is not None
    assert "set_grad_enabled(recorded)" in story.cause.line.text


def test_functional_derivatives_have_graphs_of_their_own() -> None:
    model = nn.Linear(3, 1)

    def step() -> Any:
        return torch.func.grad(lambda w: (X @ w).sum())(model.weight.T).sum()

    assert inspect.explain(step, model)["weight"].gradient == "none"


def test_zero_gradients_and_who_made_them() -> None:
    model = Net()

    def step() -> Any:
        h = F.relu(model.first(X) - 1000)  # dead
        loss = model.second(h).sum()
        loss.backward()
        return loss

    story = inspect.explain(step, model)["first.weight"]
    assert (story.gradient, story.norm, story.cause.code) == ("zero", 0.0, "zero")
    assert "ReluBackward0" in story.cause.reason and "# dead" in story.cause.reason
    assert inspect.explain(step(), model)["first.weight"].cause.code == "zero"


def test_gradients_that_are_not_finite() -> None:
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    loss = x.sqrt().sum()
    loss.backward()
    story = inspect.explain(loss)["x"]
    assert story.gradient == "not finite" and str(story).startswith("not finite, norm inf")


def test_a_loss_without_a_graph() -> None:
    model = Net()
    with torch.no_grad():
        loss = model(X).sum()
    explained = inspect.explain(loss, model)
    assert explained.operations == 0 and "it has no graph" in str(explained)
    assert "`torch.no_grad` at test_explanation.py" in explained.notes[0]
    assert explained.picture is None


def test_a_tensor_that_is_no_loss() -> None:
    leaf = torch.ones(3, requires_grad=True)
    assert "`explain(loss, tensor)`" in inspect.explain(leaf).notes[0]
    h = leaf * 2
    assert "only leaves keep it" in inspect.explain(h).notes[0]
    h.retain_grad()
    assert "not called since `retain_grad()`" in inspect.explain(h).notes[0]
    h.sum().backward()
    assert not inspect.explain(h).notes
    assert "no graph" in inspect.explain(torch.ones(3)).notes[0]


def test_leaves_that_the_model_does_not_have() -> None:
    class Hidden(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [nn.Linear(3, 3), nn.Linear(3, 1)]
            self.scale = torch.ones(1, requires_grad=True)
            self.last = nn.Linear(1, 1)

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return self.last(x) * self.scale

    model = Hidden()
    loss = model(X).sum()
    loss.backward()
    explained = inspect.explain(loss, model)
    assert explained["layers[0].weight"].gradient == "finite"
    assert any("plain list" in note and "ModuleList" in note for note in explained.notes)
    of_model = inspect.explain(model)
    assert [row.name for row in of_model.of("forgotten")] == [
        "layers[0].weight", "layers[0].bias", "layers[1].weight", "layers[1].bias", "scale",
    ]  # fmt: skip
    row = of_model.of("forgotten")[0]
    assert row.line is not None and row.line.text.startswith("self.layers = [")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = inspect.explain(optimizer, model).of("forgotten")
    assert "layers[1].bias" in [row.name for row in rows] and "plain list" in rows[0].reason


def test_memory_is_counted_once() -> None:
    weight = torch.ones(8, 4, requires_grad=True)
    x = torch.ones(16, 4)
    y = x @ weight.T  # keeps x
    loss = (y.tanh() * y.tanh()).sum()  # each tanh keeps its result
    explained = inspect.explain(loss)
    of_result = 16 * 8 * 4
    assert explained.bytes == x.nbytes + 2 * of_result
    assert sum(held.bytes for held in explained.held) == explained.bytes
    assert explained.held[0].bytes == of_result
    assert "memory that the graph keeps" in str(explained)
    loss.backward()
    assert inspect.explain(loss).freed
    assert "backward has freed" in str(inspect.explain(loss))
    shared = torch.ones(100, requires_grad=True)
    z = shared * 1
    assert inspect.explain((z.exp() + z.sin()).sum()).bytes == 2 * 400  # exp's result, and z


def test_memory_of_parameters_is_apart() -> None:
    weight = torch.ones(10, requires_grad=True)
    x = (weight * 2).requires_grad_()
    explained = inspect.explain((x * weight).sum())
    assert explained.parameter_bytes == weight.nbytes and explained.bytes == x.nbytes


def test_broadcasts_and_changes_of_the_dtype() -> None:
    w = torch.ones(5, 1, requires_grad=True)
    target = torch.ones(5, requires_grad=True)
    loss = ((w - target).double() ** 2).mean()
    explained = inspect.explain(loss)
    assert any("(5, 1) and (5,) gives (5, 5)" in each and "intended?" in each for each in explained.broadcasts)
    assert any("float32 becomes float64" in each for each in explained.casts)
    watched = inspect.explain(lambda: (w - target.detach()).mean())  # the line
    assert "# the line" in watched.broadcasts[0]


def test_names_of_leaves() -> None:
    outside = torch.ones(2, requires_grad=True)
    loss = (outside * torch.ones(2, requires_grad=True)).sum()
    names = [story.name for story in inspect.explain(loss).parameters]
    assert sorted(names) == ["a leaf of shape (2,)", "outside"]
    named = inspect.explain(loss, [outside])
    assert named["0"].reached and named["0"].cause.code == "no backward"
    assert inspect.explain(loss, outside)["tensor"].shape == (2,)
    two = {"a": nn.Linear(1, 1), "b": nn.Linear(1, 1)}
    assert [s.name for s in inspect.explain(two["a"](torch.ones(1)).sum(), two).parameters] == [
        "a.weight", "a.bias", "b.weight", "b.bias",
    ]  # fmt: skip


def test_models_that_are_no_variables_are_found_where_they_are_called() -> None:
    def make() -> Any:
        model, loss_of = Net(), nn.MSELoss()
        return lambda: loss_of(model(X), torch.zeros(4, 1))

    step = make()
    assert [s.name for s in inspect.explain(step).parameters] == [
        "first.weight", "first.bias", "second.weight", "second.bias",
    ]  # fmt: skip
    names = [s.name for s in inspect.explain(step()).parameters]  # not watched: leaves without a name
    assert names == ["a leaf of shape (3, 3)", "a leaf of shape (3,)", "a leaf of shape (1, 3)", "a leaf of shape (1,)"]
    ones = [torch.ones(2, requires_grad=True) for _ in range(3)]
    names = [s.name for s in inspect.explain((ones[0] * ones[1] * ones[2]).sum()).parameters]
    assert sorted(names) == [f"a leaf of shape (2,){number}" for number in ("", " #2", " #3")]


def test_a_model() -> None:
    model = Net()
    model.second.weight = nn.Parameter(torch.ones(1, 3))
    model.third = nn.Linear(3, 1)
    model.third.weight = model.second.weight
    model.third.bias.requires_grad_(False)
    model.norm = nn.BatchNorm1d(3).eval()
    explained = inspect.explain(model)
    states = {row.name: row.state for row in explained.rows}
    assert states["third.bias"] == "frozen" and states["first.weight"] == "trained"
    assert "third.weight" not in states
    row = next(row for row in explained.rows if row.name == "second.weight")
    assert row.reason == "also used as third.weight"
    assert any("not norm" in note for note in explained.notes) and "3 buffers" in explained.notes[0]
    assert str(explained).startswith("Net: 6 trained (22 numbers), 1 frozen (1 numbers)")


def test_an_optimizer() -> None:
    model = Net()
    model.first.bias.requires_grad_(False)
    optimizer = torch.optim.SGD(
        [{"params": [model.first.weight], "lr": 0.5}, {"params": [model.first.bias, model.second.weight], "lr": 0.0}]
    )
    explained = inspect.explain(optimizer, model)
    rows = {row.name: (row.state, row.reason) for row in explained.rows}
    assert rows["first.weight"] == ("trained", "group 0, learning rate 0.5")
    assert rows["first.bias"] == ("frozen", "in group 1, but requires_grad is False")
    assert rows["second.weight"] == ("frozen", "the learning rate of group 1 is 0")
    assert rows["second.bias"] == ("forgotten", "in no group of the optimizer")
    other = copy.deepcopy(model)
    explained = inspect.explain(optimizer, other)
    assert len(explained.of("foreign")) == 3 and "(of the shape of first.weight)" in explained.of("foreign")[0].reason
    assert "trains none of the model's parameters" in explained.notes[0]
    assert str(inspect.explain(torch.optim.Adam(other.parameters()))).startswith("Adam for Net: 3 trained")


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="explain\\(\\): expected a tensor"):
        inspect.explain(3)
    with pytest.raises(TypeError, match="model should be a Module"):
        inspect.explain(torch.ones(1), "model")
    with pytest.raises(TypeError, match=r"model\['a'\] should be"):
        inspect.explain(torch.ones(1), {"a": 1})


def test_the_tensors_of_a_watched_step_do_not_change() -> None:
    def train(watched: bool) -> Any:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Linear(3, 1))
        optimizer = torch.optim.Adam(model.parameters())

        def step() -> Any:
            optimizer.zero_grad()
            loss = model(X).pow(2).sum()
            loss.backward()
            optimizer.step()
            return loss

        for _ in range(3):
            if watched:
                inspect.explain(step, model)
            else:
                step()
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    assert torch.equal(train(False), train(True))


def test_static_looks_at_classes() -> None:
    assert is_mentioned(Net(), "first") and not is_mentioned(Net(), "third")
    assert is_mentioned(nn.Linear(1, 1), "anything")  # not the user's class: it is not known


class Tags(html.parser.HTMLParser):
    """Checks that tags are closed in order, and collects the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in ("rect", "path", "line", "circle", "polygon", "marker-end"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if self.open and tag == self.open[-1]:
            self.open.pop()
        else:
            assert tag in ("rect", "path", "line", "circle", "polygon"), f"</{tag}> in {self.open}"

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_html() -> None:
    model = Net()
    explained = inspect.explain(lambda: model.second(model.first(X).detach()).sum(), model)
    for text in (explained, inspect.explain(model), inspect.explain(torch.optim.SGD(model.parameters()), model)):
        page = text._repr_html_()
        tags = Tags()
        tags.feed(page)
        assert not tags.open
        assert not re.search(r"(src|href)=|@import|url\(|<script", page)  # self-contained
        assert "prefers-color-scheme:dark" in page and "max-width:640px" in page
        assert "first.weight" in "".join(tags.words)
    assert "<svg" in explained._repr_html_() and "model.first(X).detach()" in explained._repr_html_()
    hostile = {"<b>&": torch.ones(1, requires_grad=True)}
    page = inspect.explain((hostile["<b>&"] * 2).sum(), hostile)._repr_html_()
    assert "<b>&" not in page and "&lt;b&gt;&amp;" in page
