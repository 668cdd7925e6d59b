"""`Module`: registration, traversal, modes, conversion, state, printing, copies."""

from __future__ import annotations

import copy
import gc
import importlib.util
import os
import pickle
import weakref
from collections import OrderedDict
from typing import Any

import pytest

import tinytorch
from tests.same import same_to_the_word as check
from tinytorch import nn
from tinytorch.nn.modules.module import Module


def net(torch: Any) -> Any:
    """Return a model with a shared layer, buffers of both kinds and a parameter of its own."""
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(3, 3)
            self.again = self.first
            self.body = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
            self.scale = nn.Parameter(torch.tensor([1.0, 2.0]))
            self.register_buffer("steps", torch.tensor(3))
            self.register_buffer("hidden", torch.tensor([0.5]), persistent=False)
            self.register_buffer("absent", None)
            self.register_parameter("missing", None)

        def forward(self, x: Any) -> Any:
            return self.body(self.first(x)) * self.scale

    torch.manual_seed(0)
    return Net()


def module(torch: Any) -> Any:
    return torch.nn.Module()


# Registration ------------------------------------------------------------------------------------


def assign_before_init(torch: Any, value: Any) -> Any:
    class Early(torch.nn.Module):
        def __init__(self) -> None:
            self.x = value

    return Early()


def delete_then_read(torch: Any) -> Any:
    n = net(torch)
    del n.scale, n.steps, n.first, n.hidden
    n.hidden = torch.zeros(1)  # a plain attribute again, and persistent no more nor less
    return [list(n.state_dict()), n._non_persistent_buffers_set == set(), n.scale]


def replace_kinds(torch: Any) -> Any:
    n = net(torch)
    seen = []
    n.steps = torch.nn.Parameter(torch.zeros(1))  # buffer -> parameter
    seen.append((list(n._parameters), list(n._buffers)))
    n.hidden = torch.nn.ReLU()  # buffer -> module, no longer in the set of non-persistent ones
    seen.append((list(n._modules), sorted(n._non_persistent_buffers_set)))
    n.plain = 3
    n.plain = torch.nn.Parameter(torch.ones(1))  # attribute -> parameter
    seen.append(("plain" in n.__dict__, list(n._parameters)))
    n.body = None
    n.scale = None
    seen.append((n.body, n.scale, list(n.state_dict())))
    return seen


def buffers(torch: Any) -> Any:
    m = module(torch)
    m.a = torch.nn.Buffer(torch.ones(2))
    m.b = torch.nn.Buffer(torch.zeros(1), persistent=False)
    m.c = torch.zeros(1)
    m.b = torch.ones(3)  # stays non-persistent
    m.a = None
    seen = [list(m._buffers), list(m.state_dict()), "c" in m.__dict__]
    m.a = torch.full((1,), 5.0)
    return [*seen, m.state_dict(), isinstance(torch.nn.Buffer(torch.ones(1)), torch.nn.Buffer), m.b]


def property_of_the_name(torch: Any) -> Any:
    class Net(torch.nn.Module):
        @property
        def weight(self) -> int:
            return 1

    n = Net()
    n.weight = torch.nn.Parameter(torch.ones(1))
    return n


def reached_through_dir(torch: Any) -> Any:
    n = net(torch)
    seq = torch.nn.Sequential(torch.nn.ReLU())
    names = {"first", "scale", "steps", "forward", "training"}
    return [names <= set(dir(n)), "0" in dir(seq), dir(n) == sorted(dir(n))]


REGISTRATION = {
    "parameter before init": lambda t: assign_before_init(t, t.nn.Parameter(t.zeros(1))),
    "module before init": lambda t: assign_before_init(t, t.nn.ReLU()),
    "buffer before init": lambda t: t.nn.Module.__new__(t.nn.Module).register_buffer("x", None),
    "register_parameter before init": lambda t: t.nn.Module.__new__(t.nn.Module).register_parameter("x", None),
    "plain before init": lambda t: assign_before_init(t, 3).x,
    "tensor before init": lambda t: assign_before_init(t, t.ones(1)).x,
    "unknown attribute": lambda t: module(t).nothing,
    "dot in parameter": lambda t: module(t).register_parameter("a.b", None),
    "dot in buffer": lambda t: module(t).register_buffer("a.b", None),
    "dot in module": lambda t: module(t).add_module("a.b", None),
    "empty parameter": lambda t: module(t).register_parameter("", None),
    "empty buffer": lambda t: module(t).register_buffer("", None),
    "empty module": lambda t: module(t).register_module("", None),
    "number as parameter name": lambda t: module(t).register_parameter(3, None),
    "number as buffer name": lambda t: module(t).register_buffer(3, None),
    "number as module name": lambda t: module(t).add_module(3, None),
    "taken parameter name": lambda t: module(t).register_parameter("forward", None),
    "taken buffer name": lambda t: module(t).register_buffer("training", None),
    "taken module name": lambda t: net(t).add_module("scale", None),
    "taken by buffer": lambda t: net(t).register_parameter("steps", None),
    "same name again": lambda t: net(t).register_parameter("scale", None),
    "tensor as parameter": lambda t: module(t).register_parameter("w", t.ones(1)),
    "number as buffer": lambda t: module(t).register_buffer("w", 3),
    "number as module": lambda t: module(t).add_module("w", 3),
    "text as module": lambda t: module(t).add_module("w", "relu"),
    "non-leaf parameter": lambda t: module(t).register_parameter("w", non_leaf(t)),
    "assign tensor to parameter": lambda t: setattr(net(t), "scale", t.ones(2)),
    "assign number to parameter": lambda t: setattr(net(t), "scale", 2.0),
    "assign module to parameter": lambda t: setattr(net(t), "scale", t.nn.ReLU()),
    "assign number to module": lambda t: setattr(net(t), "first", 3),
    "assign tensor to module": lambda t: setattr(net(t), "first", t.ones(1)),
    "assign number to buffer": lambda t: setattr(net(t), "steps", 3),
    "delete unknown": lambda t: delattr(module(t), "nothing"),
    "delete": delete_then_read,
    "replace": replace_kinds,
    "buffers": buffers,
    "property": property_of_the_name,
    "dir": reached_through_dir,
    "positional argument": lambda t: t.nn.Module(3),
    "keyword argument": lambda t: t.nn.Module(a=3),
    "no forward": lambda t: module(t)(t.ones(1)),
}


def non_leaf(torch: Any) -> Any:
    """Return a Parameter that is the result of an operation."""
    made = torch.nn.Parameter(torch.ones(1))
    made.mul_(1) if not made.requires_grad else None
    result = torch.nn.Parameter(torch.ones(2))
    with torch.no_grad():
        result.requires_grad_(False)
    result.mul_(made)  # in place, by something that requires grad: the object is a Parameter and no leaf
    return result


def call_super_init(torch: Any) -> Any:
    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

    class Net(torch.nn.Module, Named):
        call_super_init = True

    return Net("me").name


# Traversal ---------------------------------------------------------------------------------------


def shared_parameter(torch: Any) -> Any:
    m = module(torch)
    m.a = torch.nn.Linear(2, 2)
    m.b = torch.nn.Linear(2, 2)
    m.b.weight = m.a.weight
    return [
        [k for k, _ in m.named_parameters()],
        [k for k, _ in m.named_parameters(remove_duplicate=False)],
        list(m.state_dict()),
        len(list(m.parameters())),
    ]


TRAVERSAL = {
    "parameters": lambda t: list(net(t).parameters()),
    "own parameters": lambda t: list(net(t).parameters(recurse=False)),
    "named_parameters": lambda t: list(net(t).named_parameters(prefix="p")),
    "shared": shared_parameter,
    "buffers": lambda t: list(net(t).buffers()),
    "named_buffers": lambda t: [k for k, _ in net(t).named_buffers("pre", recurse=False)],
    "children": lambda t: list(net(t).children()),
    "named_children": lambda t: list(net(t).named_children()),
    "modules": lambda t: list(net(t).modules()),
    "all modules": lambda t: len(list(net(t).modules(remove_duplicate=False))),
    "named_modules": lambda t: [k for k, _ in net(t).named_modules()],
    "named_modules, prefix": lambda t: [k for k, _ in net(t).named_modules(prefix="x", remove_duplicate=False)],
    "apply order": lambda t: applied(t),
    "get_submodule": lambda t: net(t).get_submodule("body.1"),
    "get_submodule of nothing": lambda t: net(t).get_submodule("") is not None,
    "get_submodule missing": lambda t: net(t).get_submodule("body.7"),
    "get_submodule no module": lambda t: net(t).get_submodule("body.0.weight"),
    "get_parameter": lambda t: net(t).get_parameter("body.0.bias"),
    "get_parameter missing": lambda t: net(t).get_parameter("body.0.beta"),
    "get_parameter of buffer": lambda t: net(t).get_parameter("steps"),
    "get_buffer": lambda t: net(t).get_buffer("steps"),
    "get_buffer of parameter": lambda t: net(t).get_buffer("scale"),
    "get_buffer missing": lambda t: net(t).get_buffer("nothing"),
    "set_submodule": lambda t: with_submodule(t, "body.0", t.nn.Tanh()),
    "set_submodule new": lambda t: with_submodule(t, "body.extra", t.nn.Tanh()),
    "set_submodule own": lambda t: with_submodule(t, "body", t.nn.Tanh()),
    "set_submodule strict": lambda t: net(t).set_submodule("body.extra", t.nn.Tanh(), strict=True),
    "set_submodule of attribute": lambda t: net(t).set_submodule("scale", t.nn.Tanh()),
    "set_submodule empty": lambda t: net(t).set_submodule("", t.nn.Tanh()),
    "set_submodule no module": lambda t: net(t).set_submodule("body", 3),
}


def applied(torch: Any) -> Any:
    seen: list[str] = []
    n = net(torch)
    assert n.apply(lambda m: seen.append(type(m).__name__)) is n
    return seen


def with_submodule(torch: Any, path: str, new: Any) -> Any:
    n = net(torch)
    n.set_submodule(path, new)
    return n


# Modes and conversions ---------------------------------------------------------------------------


def modes(torch: Any) -> Any:
    n = net(torch)
    seen = [n.training]
    assert n.eval() is n
    seen += [m.training for m in n.modules()]
    assert n.train() is n
    return seen + [m.training for m in n.modules()]


def freezing(torch: Any) -> Any:
    n = net(torch)
    assert n.requires_grad_(False) is n
    frozen = [p.requires_grad for p in n.parameters()]
    n.body.requires_grad_()
    return [frozen, [p.requires_grad for p in n.parameters()], n(torch.ones(1, 3))]


def zeroing(torch: Any) -> Any:
    n = net(torch)
    n(torch.ones(1, 3)).sum().backward()
    kept = n.scale.grad
    n.zero_grad(set_to_none=False)
    seen = [n.scale.grad is kept, [p.grad for p in n.parameters()]]
    n.zero_grad()
    return [*seen, [p.grad for p in n.parameters()]]


def zeroing_a_recorded_gradient(torch: Any) -> Any:
    n = net(torch)
    n.scale.grad = n.scale * 2
    n.zero_grad(set_to_none=False)
    return [n.scale.grad, n.scale.grad.grad_fn is None]


def converted(torch: Any, convert: Any) -> Any:
    n = net(torch)
    n(torch.ones(1, 3)).sum().backward()
    before = list(n.parameters())
    assert convert(n) is n
    return [
        all(a is b for a, b in zip(before, n.parameters(), strict=True)),
        [(p, p.grad) for p in n.parameters()],
        list(n.buffers()),
    ]


def empty_memory(torch: Any) -> Any:
    n = net(torch).to_empty(device="cpu")
    return [(tuple(p.shape), str(p.dtype), p.requires_grad) for p in n.parameters()]


def to_refuses(*args: Any, **kwargs: Any) -> Any:
    def program(torch: Any) -> Any:
        try:
            torch.nn.Linear(1, 1).to(*(a(torch) if callable(a) and a is not float else a for a in args), **kwargs)
        except TypeError as error:
            return str(error).partition(" - got")[0]
        return "accepted"

    return program


CONVERSION = {
    "modes": modes,
    "mode is no bool": lambda t: net(t).train("yes"),
    "freezing": freezing,
    "zero_grad": zeroing,
    "zero_grad of a recorded gradient": zeroing_a_recorded_gradient,
    "double": lambda t: converted(t, lambda n: n.double()),
    "half and back": lambda t: converted(t, lambda n: n.half().float()),
    "to dtype": lambda t: converted(t, lambda n: n.to(t.float64)),
    "to keyword": lambda t: converted(t, lambda n: n.to(dtype=t.float64, device="cpu")),
    "to device": lambda t: converted(t, lambda n: n.to(t.device("cpu"))),
    "to device and dtype": lambda t: converted(t, lambda n: n.to("cpu", t.float64, True)),
    "to dtype, non_blocking": lambda t: converted(t, lambda n: n.to(t.float64, True)),
    "to tensor": lambda t: converted(t, lambda n: n.to(t.zeros(1, dtype=t.float64))),
    "to tensor by name": lambda t: converted(t, lambda n: n.to(tensor=t.zeros(1, dtype=t.float64))),
    "to nothing": lambda t: converted(t, lambda n: n.to()),
    "to None": lambda t: converted(t, lambda n: n.to(None)),
    "to Python float": lambda t: converted(t, lambda n: n.to(float)),
    "cpu": lambda t: converted(t, lambda n: n.cpu()),
    "to integers": lambda t: net(t).to(t.int32),
    "to bool": lambda t: net(t).to(t.bool),
    "to unknown keyword": to_refuses(foo=1),
    "to two dtypes": to_refuses(lambda t: t.float64, lambda t: t.float32),
    "to dtype by text": to_refuses(dtype="float32"),
    "type": lambda t: net(t).body.type(t.float64)[0].weight,
    "type by name": lambda t: net(t).body.type("torch.DoubleTensor")[0].weight,
    "type of integers": lambda t: net(t).body.type(t.int64),
    "to_empty": empty_memory,
    "compile": lambda t: module(t).extra_repr(),
}


# State -------------------------------------------------------------------------------------------


def metadata(torch: Any) -> Any:
    state = net(torch).state_dict()
    return [type(state).__name__, dict(state._metadata)]


def state_shares_memory(torch: Any) -> Any:
    n = net(torch)
    state = n.state_dict()
    state["scale"].fill_(7)
    return [n.scale, n.state_dict(keep_vars=True)["scale"] is n.scale, state["scale"].requires_grad]


def state_positional(torch: Any) -> Any:
    return list(net(torch).state_dict(OrderedDict(), "pre.", False))


def loading(torch: Any, change: Any, **options: Any) -> Any:
    n = net(torch)
    state = n.state_dict()
    change(state)
    result = n.load_state_dict(state, **options)
    return [repr(result), result.missing_keys, result.unexpected_keys, n.scale, list(n.state_dict())]


def set_items(**items: Any) -> Any:
    def change(state: Any) -> None:
        for key, value in items.items():
            path = key.replace("__", ".")
            if value is None:
                del state[path]
            else:
                state[path] = value

    return change


def assigning(torch: Any) -> Any:
    n = net(torch)
    scale = n.scale
    state = {k: v.double() if v.is_floating_point() else v for k, v in n.state_dict().items()}
    state["body.0.bias"] = torch.nn.Parameter(torch.zeros(2), requires_grad=False)
    n.load_state_dict(state, assign=True)
    return [n.scale is scale, n.scale, n.body[0].bias is state["body.0.bias"], n.body[0].bias, n.first.weight.dtype]


def extra_state(torch: Any, *, drop: bool = False, strict: bool = True) -> Any:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = 5

        def get_extra_state(self) -> Any:
            return {"count": self.count}

        def set_extra_state(self, state: Any) -> None:
            self.count = state["count"]

    a, b = torch.nn.Sequential(Counter()), torch.nn.Sequential(Counter())
    a[0].count = 9
    state = a.state_dict()
    if drop:
        del state["0._extra_state"]
    result = b.load_state_dict(state, strict=strict)
    return [dict(state), b[0].count, repr(result)]


def unexpected_extra_state(torch: Any) -> Any:
    return torch.nn.ReLU().load_state_dict({"_extra_state": 3})


def own_loading(torch: Any) -> Any:
    class Old(torch.nn.Linear):
        _version = 4

        def _load_from_state_dict(self, state: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
            if local_metadata.get("version", 0) < 4:
                state[prefix + "weight"] = state.pop(prefix + "kernel")
            super()._load_from_state_dict(state, prefix, local_metadata, *rest)

    m = torch.nn.Sequential(Old(2, 1))
    m.load_state_dict({"0.kernel": torch.ones(1, 2), "0.bias": torch.ones(1)})
    return [m.state_dict(), dict(m.state_dict()._metadata)]


def zero_dim_from_vector(torch: Any) -> Any:
    m = module(torch)
    m.w = torch.nn.Parameter(torch.tensor(1.0))
    m.load_state_dict({"w": torch.tensor([4.0])})
    return m.w


def state_of_old_name(torch: Any) -> Any:
    """The module's keys start with its neighbour's: no prefix may be taken for another."""
    m = torch.nn.ModuleDict({"a": torch.nn.Linear(1, 1), "ab": torch.nn.Linear(1, 1)})
    return m.load_state_dict(m.state_dict())


def uncopiable(torch: Any) -> Any:
    m = module(torch)
    m.register_buffer("b", torch.zeros(1).expand(3))  # three elements in the memory of one
    try:
        m.load_state_dict({"b": torch.arange(3.0)})
    except RuntimeError as error:
        return str(error).partition("exception occurred")[0]


STATE = {
    "uncopiable": uncopiable,
    "state_dict": lambda t: net(t).state_dict(),
    "prefix": lambda t: list(net(t).state_dict(prefix="model.")),
    "destination": lambda t: list(net(t).state_dict(destination={"first": 1})),
    "positional": state_positional,
    "metadata": metadata,
    "memory": state_shares_memory,
    "load": lambda t: loading(t, set_items(scale=t.tensor([5.0, 6.0]))),
    "load list": lambda t: net(t).load_state_dict([1]),
    "missing": lambda t: loading(t, set_items(scale=None, body__0__bias=None)),
    "unexpected": lambda t: loading(t, set_items(body__0__x=t.ones(1), y=t.ones(1), z__w=t.ones(1))),
    "misshaped": lambda t: loading(t, set_items(scale=t.ones(3), first__weight=t.ones(2, 2))),
    "everything wrong": lambda t: loading(t, set_items(scale=t.ones(3), y=t.ones(1), steps=None)),
    "misshaped is an error when not strict": lambda t: loading(t, set_items(scale=t.ones(3)), strict=False),
    "not strict": lambda t: loading(t, set_items(scale=None, y=t.ones(1)), strict=False),
    "no tensor": lambda t: loading(t, set_items(scale=3)),
    "another dtype": lambda t: loading(t, set_items(scale=t.tensor([3, 4]))),
    "hidden buffer is unexpected": lambda t: loading(t, set_items(hidden=t.ones(1))),
    "assign": assigning,
    "extra state": extra_state,
    "extra state missing": lambda t: extra_state(t, drop=True),
    "extra state missing, not strict": lambda t: extra_state(t, drop=True, strict=False),
    "extra state unexpected": unexpected_extra_state,
    "own loading": own_loading,
    "0-d from vector": zero_dim_from_vector,
    "names with a common start": state_of_old_name,
}


# Printing, copies --------------------------------------------------------------------------------


def deep_copy(torch: Any) -> Any:
    n = net(torch)
    n(torch.ones(1, 3)).sum().backward()
    n.scale.note = "hi"
    c = copy.deepcopy(n)
    c.scale.data.fill_(0)
    return [
        c is n, c.first is c.again, c.first is n.first, n.scale, c.scale, c.scale.grad,
        hasattr(c.scale, "note"),
        list(c.state_dict()), c.body, isinstance(c.scale, torch.nn.Parameter), c.hidden, c.training,
    ]  # fmt: skip


def lines_of_extra(torch: Any) -> Any:
    class Many(torch.nn.Module):
        def __init__(self, child: bool) -> None:
            super().__init__()
            if child:
                self.child = torch.nn.Sequential(torch.nn.ReLU())
                self.none = None
                self.add_module("gone", None)

        def extra_repr(self) -> str:
            return "a=1\nb=2"

        def _get_name(self) -> str:
            return "Renamed"

    return [repr(Many(False)), repr(Many(True)), str(Many(True))]


COPIES = {
    "repr": lambda t: repr(net(t)),
    "empty repr": lambda t: repr(module(t)),
    "extra lines": lines_of_extra,
    "deepcopy": deep_copy,
    "setstate of an older pickle": lambda t: old_pickle(t),
    "call_super_init": call_super_init,
}


def old_pickle(torch: Any) -> Any:
    state = torch.nn.Linear(1, 1).__dict__.copy()
    for name in ("_forward_hooks_always_called", "_non_persistent_buffers_set", "_backward_pre_hooks"):
        del state[name]
    m = torch.nn.Linear.__new__(torch.nn.Linear)
    m.__setstate__(state)
    return [m, m(torch.zeros(1)).shape == (1,), len(m.state_dict())]


PROGRAMS = {
    f"{group}: {name}": program
    for group, programs in {
        "registration": REGISTRATION,
        "traversal": TRAVERSAL,
        "conversion": CONVERSION,
        "state": STATE,
        "copies": COPIES,
    }.items()
    for name, program in programs.items()
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_as_pytorch(name: str) -> None:
    check(PROGRAMS[name])


class Pickled(nn.Module):
    """At module level, where pickle finds it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 1)
        self.tied = self.layer
        self.register_buffer("steps", tinytorch.tensor(3), persistent=False)
        self.layer.register_forward_hook(double_output)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


def double_output(module: Any, args: Any, output: Any) -> Any:
    return output * 2


def test_a_pickled_module_comes_back_with_hooks_and_ties() -> None:
    made = Pickled().eval()
    again = pickle.loads(pickle.dumps(made))
    x = tinytorch.ones(3, 2)
    assert again(x).equal(made(x))
    assert again.layer is again.tied and not again.training
    assert type(again.layer.weight) is nn.Parameter and again.layer.weight.requires_grad
    assert again._non_persistent_buffers_set == {"steps"}


def test_getstate_is_a_copy_of_the_dictionary() -> None:
    made = nn.Linear(1, 1)
    made.__getstate__().clear()
    assert made.in_features == 1


def test_modules_die_without_the_collector() -> None:
    made = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    made.register_forward_hook(double_output)
    made.register_load_state_dict_pre_hook(lambda *args: None)
    gone = weakref.ref(made)
    gc.disable()
    try:
        made(tinytorch.ones(1, 2)).sum().backward()
        del made
        assert gone() is None
    finally:
        gc.enable()


def test_cuda_says_that_there_is_none() -> None:
    for module in (nn.Linear(1, 1), nn.ReLU()):
        with pytest.raises(AssertionError, match="not compiled with CUDA"):
            module.cuda()
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        nn.Linear(1, 1).to("cuda")
    with pytest.raises(RuntimeError, match=r"Expected one of cpu.*device type at start of device string: float"):
        nn.Linear(1, 1).to("float")


def test_bfloat16_needs_its_extra() -> None:
    layer = nn.Linear(1, 1)
    if importlib.util.find_spec("ml_dtypes") is None:
        with pytest.raises(ImportError, match="bf16"):
            layer.bfloat16()
    else:
        assert layer.bfloat16().weight.dtype is tinytorch.bfloat16


def test_sharing_memory() -> None:
    def program(torch: Any) -> Any:
        layer = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
        layer(torch.ones(3, 2)).sum().backward()
        weight = layer[0].weight
        before = [p.is_shared() for p in layer.parameters()]
        same = layer.share_memory() is layer and layer[0].weight is weight
        torch.optim.SGD(layer.parameters(), lr=0.1).step()
        layer.load_state_dict(layer.state_dict())
        tensors = [*layer.parameters(), *layer.buffers(), *(p.grad for p in layer.parameters())]
        return before, same, [each.is_shared() for each in tensors]

    check(program)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="memory is shared by forking")
def test_processes_train_one_model() -> None:
    layer = nn.Linear(2, 1)
    nn.init.zeros_(layer.weight)
    layer.share_memory()
    child = os.fork()
    if child == 0:
        layer(tinytorch.ones(1, 2)).sum().backward()
        tinytorch.optim.SGD(layer.parameters(), lr=1.0).step()
        os._exit(0)
    os.waitpid(child, 0)
    assert layer.weight.tolist() == [[-1.0, -1.0]]


def test_compile_changes_nothing() -> None:
    layer = nn.Linear(2, 2)
    assert layer.compile(mode="reduce-overhead") is None
    assert layer(tinytorch.ones(1, 2)).shape == (1, 2)


def test_extra_state_is_the_subclass_s_to_define() -> None:
    for call in (nn.Module().get_extra_state, lambda: nn.Module().set_extra_state(1)):
        with pytest.raises(RuntimeError, match="never be called"):
            call()


def test_adding_a_module_before_init_says_so() -> None:
    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__\(\) call"):
        Module.__new__(Module).add_module("x", nn.ReLU())


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("takes", [True, False])
def test_a_buffer_goes_through_the_register_buffer_of_a_subclass(takes, persistent):
    def program(torch: Any) -> Any:
        class Full(torch.nn.Module):
            def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
                super().register_buffer(name, tensor, persistent)

        class Bare(torch.nn.Module):
            def register_buffer(self, name: str, tensor: Any) -> None:
                super().register_buffer(name, tensor)

        layer = (Full if takes else Bare)()
        layer.mean = torch.nn.Buffer(torch.ones(2), persistent=persistent)
        layer.mean = torch.zeros(2)
        return layer.mean, list(layer.state_dict())

    check(program)


@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm", "prune"])
def test_pickles_of_modules_whose_weights_are_computed(kind):
    def program(torch: Any) -> Any:
        layer = torch.nn.Linear(3, 2)
        if kind == "prune":
            prune = importlib.import_module(f"{torch.__name__}.nn.utils.prune")
            prune.identity(layer, "weight")
        else:
            getattr(torch.nn.utils, kind)(layer)
        again = pickle.loads(pickle.dumps(layer))
        return again(torch.ones(1, 3)), list(again.state_dict()), again.weight.shape

    check(program)


@pytest.mark.parametrize(("overwrite", "swap"), [(False, False), (True, False), (True, True)])
def test_conversions_with_new_parameters(overwrite, swap):
    def program(torch: Any) -> Any:
        layer = torch.nn.BatchNorm1d(2)
        layer.bias.requires_grad_(False)
        layer(torch.ones(3, 2)).sum().backward()
        weight, grad = layer.weight, layer.weight.grad
        future = torch.__future__
        future.set_overwrite_module_params_on_conversion(overwrite)
        future.set_swap_module_params_on_conversion(swap)
        try:
            layer.double()
            asked = (future.get_overwrite_module_params_on_conversion(), future.get_swap_module_params_on_conversion())
        finally:
            future.set_overwrite_module_params_on_conversion(False)
            future.set_swap_module_params_on_conversion(False)
        return (
            asked, layer.weight is weight, weight.dtype, grad.dtype, layer.weight.grad,
            layer.bias, layer.running_mean, type(layer.weight) is torch.nn.Parameter,
        )  # fmt: skip

    check(program)


def test_loading_leaves_nothing_to_the_garbage_collector() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.BatchNorm1d(2)))
    state = model.state_dict()
    gc.collect()
    gc.disable()
    try:
        model.load_state_dict(state)
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("container", ["Sequential", "ModuleList"])
def test_empty_lines_of_a_representation(container: str) -> None:
    def program(torch: Any) -> Any:
        class Told(torch.nn.Module):
            def extra_repr(self) -> str:
                return "one\n\ntwo"

        kind = getattr(torch.nn, container)
        return repr(torch.nn.Sequential(kind([Told()]) if "List" in container else kind(Told())))

    check(program)
