"""The containers of modules and of parameters, compared with PyTorch."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

from tests.same import same_to_the_word as check


def row(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 2), nn.Tanh())


def listed(torch: Any) -> Any:
    nn = torch.nn
    return nn.ModuleList([nn.Linear(3, 2), nn.ReLU(), nn.ReLU(), nn.Tanh()])


def named(torch: Any) -> Any:
    return torch.nn.ModuleDict({"b": torch.nn.ReLU(), "a": torch.nn.Linear(2, 1)})


def weights(torch: Any) -> Any:
    return torch.nn.ParameterList([torch.ones(2), torch.nn.Parameter(torch.zeros(1, 2)), 3])


def params(torch: Any) -> Any:
    return torch.nn.ParameterDict({"b": torch.ones(2), "a": torch.zeros(1, 2), "c": "text"})


def after(make: Any, *steps: Any) -> Any:
    """Return a program: take the steps on a container; what they gave, and what it is then."""

    def program(torch: Any) -> Any:
        made = make(torch)
        results = [step(made, torch) for step in steps]
        results = [None if result is made else result for result in results]  # methods that return self
        return [results, repr(made), list(made.state_dict()), len(made)]

    return program


def delete(key: Any) -> Any:
    def step(container: Any, torch: Any) -> None:
        del container[key]

    return step


def put(key: Any, value: Any) -> Any:
    def step(container: Any, torch: Any) -> None:
        container[key] = value(torch)

    return step


def add_in_place(other: Any) -> Any:
    def step(container: Any, torch: Any) -> Any:
        before = container
        container += other(torch)
        return container is before

    return step


def times_in_place(count: Any) -> Any:
    def step(container: Any, torch: Any) -> Any:
        before = container
        container *= count
        return container is before

    return step


def by_number(torch: Any) -> Any:
    try:
        return params(torch)[3]
    except TypeError as error:
        return str(error).partition(". ")[0].rstrip(".")


def subclass_slices(torch: Any) -> Any:
    class Mine(torch.nn.Sequential):
        pass

    part = Mine(torch.nn.ReLU(), torch.nn.Tanh())[1:]
    return [type(part).__name__, part]


def sequential_runs(torch: Any) -> Any:
    torch.manual_seed(0)
    x = torch.ones(2, 3)
    model = row(torch)
    step_by_step = x
    for layer in model:
        step_by_step = layer(step_by_step)
    return [model(x), step_by_step, torch.nn.Sequential()(5)]


def sequential_by_name(torch: Any) -> Any:
    model = torch.nn.Sequential(OrderedDict([("in", torch.nn.Linear(1, 2)), ("act", torch.nn.ReLU())]))
    model.append(torch.nn.Tanh())
    return [model, model.act, model[0], model[:1], list(model.state_dict())]


SEQUENTIAL = {
    "runs": sequential_runs,
    "by name": sequential_by_name,
    "subclass": subclass_slices,
    "items": after(row, lambda s, t: [s[0], s[-1], s[True], s[t.tensor(1)]]),
    "slices": after(row, lambda s, t: [s[1:3], s[::2], s[::-1], s[5:]]),
    "out of range": after(row, lambda s, t: s[4]),
    "below range": after(row, lambda s, t: s[-5]),
    "by text": after(row, lambda s, t: s["0"]),
    "set": after(row, put(1, lambda t: t.nn.Sigmoid()), put(-1, lambda t: t.nn.Identity())),
    "set out of range": after(row, put(9, lambda t: t.nn.Sigmoid())),
    "set no module": after(row, put(1, lambda t: 3)),
    "delete": after(row, delete(1)),
    "delete last": after(row, delete(-1)),
    "delete slice": after(row, delete(slice(0, 4, 2))),
    "delete out of range": after(row, delete(4)),
    "pop": after(row, lambda s, t: s.pop(1), lambda s, t: s.pop(-1)),
    "pop slice": after(row, lambda s, t: s.pop(slice(0, 2))),
    "append": after(row, lambda s, t: s.append(t.nn.Sigmoid())),
    "append no module": after(row, lambda s, t: s.append(3)),
    "insert": after(row, lambda s, t: s.insert(1, t.nn.Sigmoid())),
    "insert at the end": after(row, lambda s, t: s.insert(4, t.nn.Sigmoid())),
    "insert from the end": after(row, lambda s, t: s.insert(-1, t.nn.Sigmoid())),
    "insert out of range": after(row, lambda s, t: s.insert(5, t.nn.Sigmoid())),
    "insert no module": after(row, lambda s, t: s.insert(0, 3)),
    "extend": after(row, lambda s, t: s.extend([t.nn.Sigmoid(), t.nn.ELU()])),
    "add": after(row, lambda s, t: s + t.nn.Sequential(t.nn.Sigmoid())),
    "add list": after(row, lambda s, t: s.__add__([t.nn.Sigmoid()])),
    "add in place": after(row, add_in_place(lambda t: t.nn.Sequential(t.nn.Sigmoid()))),
    "add itself in place": after(row, lambda s, t: s.__iadd__(t.nn.Sequential(*s))),
    "add list in place": after(row, add_in_place(lambda t: [t.nn.Sigmoid()])),
    "times": after(row, lambda s, t: s * 2, lambda s, t: 1 * s),
    "times nothing": after(row, lambda s, t: s * 0),
    "times text": after(row, lambda s, t: s * "2"),
    "times in place": after(row, times_in_place(3)),
    "times nothing in place": after(row, times_in_place(-1)),
    "times float in place": after(row, times_in_place(1.5)),
    "iteration": after(row, lambda s, t: [type(m).__name__ for m in s], lambda s, t: list(reversed(s))),
    "no module": lambda t: t.nn.Sequential(t.nn.ReLU(), 3),
    "function": lambda t: t.nn.Sequential(len),
    "class": lambda t: t.nn.Sequential(t.nn.ReLU),
    "dict": lambda t: t.nn.Sequential({"a": t.nn.ReLU()}),
}

LIST = {
    "items": after(listed, lambda s, t: [s[0], s[-1], s[1:3], s[::-2]]),
    "out of range": after(listed, lambda s, t: s[4]),
    "below range": after(listed, lambda s, t: s[-5]),
    "set": after(listed, put(1, lambda t: t.nn.Sigmoid()), put(-1, lambda t: t.nn.Identity())),
    "set out of range": after(listed, put(4, lambda t: t.nn.Sigmoid())),
    "delete": after(listed, delete(1), delete(-1)),
    "delete slice": after(listed, delete(slice(1, 3))),
    "delete out of range": after(listed, delete(4)),
    "pop": after(listed, lambda s, t: s.pop(0)),
    "pop slice": after(listed, lambda s, t: s.pop(slice(1, 3))),
    "append": after(listed, lambda s, t: s.append(t.nn.Sigmoid())),
    "append None": after(listed, lambda s, t: s.append(None)),
    "append no module": after(listed, lambda s, t: s.append("relu")),
    "insert": after(listed, lambda s, t: s.insert(1, t.nn.Sigmoid())),
    "extend": after(listed, lambda s, t: s.extend(t.nn.ReLU() for _ in range(2))),
    "extend by no list": after(listed, lambda s, t: s.extend(3)),
    "add": after(listed, lambda s, t: s.__add__([t.nn.Sigmoid()])),
    "add in place": after(listed, add_in_place(lambda t: [t.nn.Sigmoid()])),
    "made of no list": lambda t: t.nn.ModuleList(3),
    "contains": after(listed, lambda s, t: [s[0] in s, t.nn.ReLU() in s]),
    "repr of none": lambda t: repr(t.nn.ModuleList()),
    "repr": lambda t: repr(t.nn.ModuleList(t.nn.Sequential(t.nn.Linear(1, 1), t.nn.ReLU()) for _ in range(3))),
    "call": lambda t: listed(t)(3),
}

DICT = {
    "items": after(named, lambda s, t: [s["a"], list(s), list(s.keys()), list(s.values()), list(s.items())]),
    "contains": after(named, lambda s, t: ["a" in s, "z" in s, 3 in s]),
    "missing": after(named, lambda s, t: s["z"]),
    "set": after(named, put("z", lambda t: t.nn.Tanh()), put("b", lambda t: t.nn.Tanh())),
    "set no module": after(named, put("z", lambda t: 3)),
    "set method's name": after(named, put("keys", lambda t: t.nn.Tanh())),
    "set dotted": after(named, put("a.b", lambda t: t.nn.Tanh())),
    "delete": after(named, delete("b")),
    "delete missing": after(named, delete("z")),
    "pop": after(named, lambda s, t: s.pop("a")),
    "pop missing": after(named, lambda s, t: s.pop("z")),
    "clear": after(named, lambda s, t: s.clear()),
    "update": after(named, lambda s, t: s.update({"z": t.nn.Tanh(), "b": t.nn.Tanh()})),
    "update from pairs": after(named, lambda s, t: s.update([("z", t.nn.Tanh())])),
    "update from its like": after(named, lambda s, t: s.update(t.nn.ModuleDict({"z": t.nn.Tanh()}))),
    "update from number": after(named, lambda s, t: s.update(3)),
    "update from no pairs": after(named, lambda s, t: s.update([3])),
    "update from triples": after(named, lambda s, t: s.update([("a", t.nn.Tanh(), 1)])),
    "keeps the order": lambda t: t.nn.ModuleDict(OrderedDict(z=t.nn.ReLU(), a=t.nn.ReLU())),
    "call": lambda t: named(t)(3),
}

PARAMETER_LIST = {
    "items": after(weights, lambda s, t: [s[0], s[-1], s[1:], list(s), type(s[0]).__name__]),
    "out of range": after(weights, lambda s, t: s[3]),
    "set": after(weights, put(0, lambda t: t.full((1,), 9.0)), put(-1, lambda t: "z")),
    "append": after(weights, lambda s, t: s.append(t.ones(1))),
    "extend": after(weights, lambda s, t: s.extend([t.ones(1), 4])),
    "extend by tensor": after(weights, lambda s, t: s.extend(t.ones(2))),
    "extend by number": after(weights, lambda s, t: s.extend(3)),
    "add in place": after(weights, add_in_place(lambda t: [t.zeros(1)])),
    "parameters": lambda t: list(weights(t).named_parameters()),
    "dir": lambda t: [name for name in dir(weights(t)) if name.isdigit()],
    "call": lambda t: weights(t)(3),
    "conversion": lambda t: list(weights(t).double()),
}

PARAMETER_DICT = {
    "items": after(params, lambda s, t: [list(s), s["a"], list(s.items()), list(s.keys()), list(s.values())]),
    "missing": after(params, lambda s, t: s["z"]),
    "number": by_number,
    "set": after(params, put("z", lambda t: t.ones(1)), put("a", lambda t: t.ones(3))),
    "delete": after(params, delete("a"), delete("c")),
    "delete missing": after(params, delete("z")),
    "contains": after(params, lambda s, t: ["a" in s, "z" in s]),
    "reversed": after(params, lambda s, t: list(reversed(s))),
    "copy": after(params, lambda s, t: [s.copy(), s.copy()["a"] is s["a"]]),
    "setdefault": after(params, lambda s, t: [s.setdefault("a", 3), s.setdefault("z", t.ones(1))]),
    "clear": after(params, lambda s, t: s.clear()),
    "pop": after(params, lambda s, t: s.pop("a")),
    "popitem": after(params, lambda s, t: s.popitem(), lambda s, t: s.popitem()),
    "popitem of none": lambda t: t.nn.ParameterDict().popitem(),
    "get": after(params, lambda s, t: [s.get("a"), s.get("z"), s.get("z", 3)]),
    "fromkeys": after(params, lambda s, t: s.fromkeys(["x", "y"], 3)),
    "update": after(params, lambda s, t: s.update({"z": t.ones(1), "y": t.ones(2)})),
    "update from pairs": after(params, lambda s, t: s.update([("z", t.ones(1))])),
    "update from its like": after(params, lambda s, t: s.update(t.nn.ParameterDict({"z": t.ones(1)}))),
    "update from triples": after(params, lambda s, t: s.update([("a", 1, 1)])),
    "update from no pairs": after(params, lambda s, t: s.update([1])),
    "or": after(params, lambda s, t: s | t.nn.ParameterDict({"z": t.ones(1)})),
    "or, from a dict": after(params, lambda s, t: list({"z": 1} | s)),
    "or in place": after(params, lambda s, t: s.__ior__(t.nn.ParameterDict({"z": t.ones(1)}))),
    "keeps the order": lambda t: list(t.nn.ParameterDict(OrderedDict(z=t.ones(1), a=t.ones(1)))),
    "parameters": lambda t: list(params(t).named_parameters()),
    "call": lambda t: params(t)(3),
}

PROGRAMS = {
    f"{group}: {name}": program
    for group, programs in {
        "Sequential": SEQUENTIAL,
        "ModuleList": LIST,
        "ModuleDict": DICT,
        "ParameterList": PARAMETER_LIST,
        "ParameterDict": PARAMETER_DICT,
    }.items()
    for name, program in programs.items()
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_as_pytorch(name: str) -> None:
    check(PROGRAMS[name])
