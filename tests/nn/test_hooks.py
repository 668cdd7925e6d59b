"""Hooks of modules: which run, in which order, with what, and what they may change."""

from __future__ import annotations

import copy
import gc
import weakref
from collections import namedtuple
from typing import Any

import pytest

import tinytorch
from tests.same import same_to_the_word as check
from tinytorch import nn
from tinytorch.nn.modules import module as module_file

Pair = namedtuple("Pair", ["left", "right"])


def log(seen: list[Any], name: str, result: Any = None) -> Any:
    """Return a hook that notes its name and what it got after the module, and returns `result`."""

    def hook(module: Any, *rest: Any) -> Any:
        seen.append((name, rest))
        return result

    return hook


def scale(torch: Any) -> Any:
    """Return a module with `y = x * w + shift` and w = 2."""

    class Scale(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.tensor(2.0))

        def forward(self, x: Any, shift: Any = 0) -> Any:
            return x * self.w + shift

    return Scale()


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0), requires_grad=True)


# Forward -----------------------------------------------------------------------------------------


def forward_order(torch: Any) -> Any:
    m, seen = scale(torch), []
    m.register_forward_pre_hook(log(seen, "pre 1"))
    m.register_forward_pre_hook(log(seen, "pre 2"))
    m.register_forward_pre_hook(log(seen, "pre first"), prepend=True)
    m.register_forward_hook(log(seen, "after 1"))
    m.register_forward_hook(log(seen, "after kwargs"), with_kwargs=True)
    m.register_forward_hook(log(seen, "after first"), prepend=True)
    m.register_forward_pre_hook(log(seen, "pre kwargs"), with_kwargs=True)
    return [m(torch.ones(1), shift=3), seen]


def forward_replaced(torch: Any) -> Any:
    m = scale(torch)
    m.register_forward_pre_hook(lambda m, args: args[0] + 1)  # a bare value becomes the only argument
    m.register_forward_pre_hook(lambda m, args: (args[0] * 10, 100))
    m.register_forward_hook(lambda m, args, out: out + args[0])
    m.register_forward_hook(lambda m, args, out: (out, "more"))
    return m(torch.ones(1))


def kwargs_replaced(torch: Any) -> Any:
    m = scale(torch)
    m.register_forward_pre_hook(lambda m, a, k: (a, {"shift": k["shift"] + 1}), with_kwargs=True)
    m.register_forward_hook(lambda m, a, k, out: out * k["shift"], with_kwargs=True)
    return m(torch.ones(1), shift=1)


def wrong_kwargs_result(torch: Any) -> Any:
    m = scale(torch)
    m.register_forward_pre_hook(lambda m, a, k: [1], with_kwargs=True)
    return m(torch.ones(1))


def removed(torch: Any) -> Any:
    m, seen = scale(torch), []
    handle = m.register_forward_hook(log(seen, "a"), with_kwargs=True, always_call=True)
    pre = m.register_forward_pre_hook(log(seen, "b"), with_kwargs=True)
    m(torch.ones(1))
    handle.remove()
    pre.remove()
    pre.remove()
    m(torch.ones(1))
    left = [m._forward_hooks, m._forward_hooks_with_kwargs, m._forward_hooks_always_called, m._forward_pre_hooks]
    return [len(seen), [len(each) for each in left]]


def removed_while_running(torch: Any) -> Any:
    m, seen = scale(torch), []
    handles: list[Any] = []

    def once(module: Any, args: Any, out: Any) -> None:
        seen.append("once")
        handles[0].remove()

    handles.append(m.register_forward_hook(once))
    m.register_forward_hook(log(seen, "other"))
    m(torch.ones(1))
    m(torch.ones(1))
    return len(seen)


def always_called(torch: Any) -> Any:
    class Fails(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("inside")

    m, seen = Fails(), []
    m.register_forward_hook(log(seen, "not"))
    m.register_forward_hook(log(seen, "always"), always_call=True)
    m.register_forward_hook(log(seen, "always, kwargs"), always_call=True, with_kwargs=True)
    try:
        m(torch.ones(1))
    except ValueError as error:
        seen.append(str(error))
    return seen


def always_called_fails_too(torch: Any) -> Any:
    m = scale(torch)

    def fail(*args: Any) -> Any:
        raise KeyError("second")

    m.register_forward_hook(fail)
    m.register_forward_hook(fail, always_call=True)
    return m(torch.ones(1))


def always_called_once(torch: Any) -> Any:
    m, seen = scale(torch), []
    m.register_forward_hook(log(seen, "always"), always_call=True)

    def fail(*args: Any) -> Any:
        raise ValueError("later")

    m.register_forward_hook(fail)
    try:
        m(torch.ones(1))
    except ValueError:
        seen.append("raised")
    return seen


# Backward ----------------------------------------------------------------------------------------


def full_backward(torch: Any, *, result: Any = None, inputs: Any = None) -> Any:
    m, seen = scale(torch), []
    m.register_full_backward_hook(log(seen, "1", result))
    m.register_full_backward_hook(log(seen, "2"))
    m.register_full_backward_hook(log(seen, "first"), prepend=True)
    m.register_full_backward_pre_hook(log(seen, "pre 1"))
    m.register_full_backward_pre_hook(log(seen, "pre first"), prepend=True)
    x = leaf(torch)
    out = m(*(inputs(torch, x) if inputs else (x,)))
    (out * torch.tensor([1.0, 3.0])).sum().backward()
    return [seen, x.grad, m.w.grad]


def several_outputs(torch: Any, unused: bool = False) -> Any:
    class Split(torch.nn.Module):
        def forward(self, x: Any, y: Any, z: Any) -> Any:
            return x * 2, y.detach(), "text", x * y

    m, seen = Split(), []
    m.register_full_backward_hook(log(seen, "hook"))
    m.register_full_backward_pre_hook(log(seen, "pre"))
    x, y = leaf(torch), leaf(torch, 5.0, 6.0)
    a, b, text, c = m(x, y, 3)
    (c if unused else a + c).sum().backward()
    return [seen, x.grad, y.grad, b, text]


def named_tuple(torch: Any) -> Any:
    class Makes(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return Pair(x * 2, 3)

    m, seen = Makes(), []
    m.register_full_backward_hook(log(seen, "hook"))
    out = m(leaf(torch))
    out.left.sum().backward()
    return [type(out).__name__, seen]


def replaced_gradients(torch: Any) -> Any:
    m = scale(torch)
    m.register_full_backward_pre_hook(lambda m, go: (go[0] * 10,))
    m.register_full_backward_hook(lambda m, gi, go: (gi[0] + go[0],))
    x = leaf(torch)
    m(x).sum().backward()
    return [x.grad, m.w.grad]


def no_input_requires_grad(torch: Any, result: Any = None) -> Any:
    m, seen = scale(torch), []
    m.register_full_backward_hook(log(seen, "hook", result))
    with_gradient = m(torch.ones(2), 1)
    with_gradient.sum().backward()
    return [seen, m.w.grad]


def dictionary_out(torch: Any) -> Any:
    class Makes(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return {"y": x * 2}

    m, seen = Makes(), []
    m.register_full_backward_hook(log(seen, "hook"))
    m(leaf(torch))["y"].sum().backward()
    return seen


def without_recording(torch: Any) -> Any:
    m, seen = scale(torch), []
    m.register_full_backward_hook(log(seen, "hook"))
    with torch.no_grad():
        y = m(leaf(torch))
    return [y, seen]


def names_of_nodes(torch: Any) -> Any:
    m = scale(torch)
    m.register_full_backward_hook(lambda *args: None)
    x = leaf(torch)
    y = m(x)
    return [y.grad_fn.name(), y.requires_grad, y.is_leaf]


def second_order(torch: Any) -> Any:
    class Cube(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x**3

    m, seen = Cube(), []
    m.register_full_backward_hook(lambda m, gi, go: seen.append(gi[0].requires_grad) or (gi[0] * 2,))
    x = leaf(torch)
    (g,) = torch.autograd.grad(m(x).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return [g.detach(), h, seen]


def twice(torch: Any) -> Any:
    m, seen = scale(torch), []
    m.register_full_backward_hook(log(seen, "hook"))
    x = leaf(torch)
    y = m(x)
    y.sum().backward(retain_graph=True)
    (y * 2).sum().backward()
    return [seen, x.grad]


def nested(torch: Any) -> Any:
    seen: list[Any] = []
    net = torch.nn.Sequential(scale(torch), torch.nn.ReLU(), scale(torch))
    for i, layer in enumerate(net):
        layer.register_full_backward_hook(log(seen, f"layer {i}"))
    net.register_full_backward_hook(log(seen, "net"))
    net(leaf(torch)).sum().backward()
    return seen


def node_hooks(torch: Any) -> Any:
    m, seen = torch.nn.ReLU(), []
    m.register_backward_hook(log(seen, "hook"))
    x = leaf(torch)
    (m(x * 2) * 3).sum().backward()
    return [seen, x.grad]


def node_hooks_on_several_nodes(torch: Any) -> Any:
    m, seen = scale(torch), []
    m.register_backward_hook(log(seen, "hook"))
    m(leaf(torch)).sum().backward()
    return len(seen)


def node_hooks_without_recording(torch: Any) -> Any:
    m, seen = torch.nn.ReLU(), []
    m.register_backward_hook(log(seen, "hook"))
    return [m(torch.ones(2)), seen]


def both_kinds(torch: Any, first: str, then: str) -> Any:
    m = scale(torch)
    getattr(m, first)(lambda *args: None)
    return getattr(m, then)(lambda *args: None)


# State -------------------------------------------------------------------------------------------


def state_hooks(torch: Any) -> Any:
    seen: list[Any] = []
    net = torch.nn.Sequential(torch.nn.Linear(1, 1))
    net.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append(("pre", prefix, keep)))
    net[0].register_state_dict_pre_hook(lambda m, prefix, keep: seen.append(("pre", prefix, keep)))

    def after(m: Any, state: Any, prefix: str, metadata: Any) -> None:
        seen.append(("post", prefix, list(state), metadata))
        state["more"] = 3

    net[0].register_state_dict_post_hook(after)
    return [list(net.state_dict(prefix="x.")), seen]


def state_hook_returns(torch: Any, public: bool) -> Any:
    m = torch.nn.Linear(1, 1)
    register = m.register_state_dict_post_hook if public else m._register_state_dict_hook
    register(lambda m, state, prefix, metadata: {"only": 1})
    return m.state_dict()


def state_hook_twice(torch: Any) -> Any:
    def hook(*args: Any) -> None:
        return None

    m = torch.nn.Linear(1, 1)
    m.register_state_dict_post_hook(hook)
    m._register_state_dict_hook(hook)


def load_hooks(torch: Any) -> Any:
    seen: list[Any] = []
    m = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False))

    def rename(module: Any, state: Any, prefix: str, *rest: Any) -> None:
        seen.append((type(module).__name__, prefix, rest))
        if prefix + "kernel" in state:
            state[prefix + "weight"] = state.pop(prefix + "kernel")

    m[0].register_load_state_dict_pre_hook(rename)
    m[0]._register_load_state_dict_pre_hook(lambda state, prefix, *rest: seen.append(prefix))

    def tolerate(module: Any, incompatible: Any) -> None:
        seen.append((list(incompatible.missing_keys), list(incompatible.unexpected_keys)))
        incompatible.unexpected_keys.clear()

    m.register_load_state_dict_post_hook(tolerate)
    given = {"0.kernel": torch.full((1, 1), 4.0), "extra": torch.ones(1)}
    return [repr(m.load_state_dict(given)), list(given), m[0].weight, seen]


def load_hook_returns(torch: Any) -> Any:
    m = torch.nn.ReLU()
    m.register_load_state_dict_post_hook(lambda m, keys: keys)
    return m.load_state_dict({})


# Global ------------------------------------------------------------------------------------------


def global_hooks(torch: Any) -> Any:
    module = torch.nn.modules.module
    seen: list[Any] = []
    m = torch.nn.Sequential(scale(torch))
    handles = [
        module.register_module_forward_pre_hook(log(seen, "global pre")),
        module.register_module_forward_hook(log(seen, "global after")),
        module.register_module_forward_hook(log(seen, "global kwargs"), with_kwargs=True),
        module.register_module_full_backward_pre_hook(log(seen, "global backward pre")),
        module.register_module_full_backward_hook(log(seen, "global backward")),
    ]
    m[0].register_forward_pre_hook(log(seen, "own pre"))
    m[0].register_forward_hook(log(seen, "own after"))
    m[0].register_full_backward_hook(log(seen, "own backward"))
    m[0].register_full_backward_pre_hook(log(seen, "own backward pre"))
    try:
        m(leaf(torch)).sum().backward()
        both = outcome_of(lambda: module.register_module_backward_hook(print))
    finally:
        for handle in handles:
            handle.remove()
        module._global_is_full_backward_hook = None
    m[0]._forward_hooks.clear()
    m(leaf(torch))
    return [seen, both]


def outcome_of(call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        return (type(error).__name__, str(error))


def global_node_hook(torch: Any) -> Any:
    module = torch.nn.modules.module
    seen: list[Any] = []
    handle = module.register_module_backward_hook(log(seen, "node"))
    try:
        torch.nn.ReLU()(leaf(torch) * 1).sum().backward()
        both = outcome_of(lambda: module.register_module_full_backward_hook(print))
    finally:
        handle.remove()
        module._global_is_full_backward_hook = None
    return [seen, both]


def global_always_called(torch: Any) -> Any:
    module = torch.nn.modules.module
    seen: list[Any] = []
    handle = module.register_module_forward_hook(log(seen, "always"), always_call=True)
    try:
        torch.nn.Module()(1)
    except NotImplementedError:
        seen.append("raised")
    finally:
        handle.remove()
    return seen


def registration_hooks(torch: Any) -> Any:
    module = torch.nn.modules.module
    seen: list[Any] = []

    def note(kind: str) -> Any:
        return lambda m, name, value: seen.append((kind, name, value is None))

    handles = [
        module.register_module_buffer_registration_hook(note("buffer")),
        module.register_module_module_registration_hook(note("module")),
        module.register_module_parameter_registration_hook(note("parameter")),
        module.register_module_module_registration_hook(
            lambda m, name, value: torch.nn.Tanh() if isinstance(value, torch.nn.ReLU) else None
        ),
    ]
    try:
        net = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(1, 1))
        net.act = torch.nn.ReLU()
        net.register_buffer("b", torch.ones(1))
        net.register_buffer("none", None)
    finally:
        for handle in handles:
            handle.remove()
    return [seen, net]


PROGRAMS = {
    "forward order": forward_order,
    "forward replaced": forward_replaced,
    "kwargs replaced": kwargs_replaced,
    "wrong result with kwargs": wrong_kwargs_result,
    "removed": removed,
    "removed while running": removed_while_running,
    "always called": always_called,
    "always called fails too": always_called_fails_too,
    "always called once": always_called_once,
    "full backward": full_backward,
    "full backward, other arguments": lambda t: full_backward(t, inputs=lambda t, x: (x, t.ones(2))),
    "full backward, unused argument": lambda t: full_backward(t, inputs=lambda t, x: (x, leaf(t) * 0 + 1)),
    "full backward, two gradients": lambda t: full_backward(t, inputs=lambda t, x: (x, x * 2)),
    "wrong number of gradients": lambda t: full_backward(t, result=(None, None)),
    "wrong number of output gradients": lambda t: wrong_pre_hook(t),
    "several outputs": several_outputs,
    "several outputs, one unused": lambda t: several_outputs(t, unused=True),
    "named tuple": named_tuple,
    "replaced gradients": replaced_gradients,
    "dictionary out": dictionary_out,
    "without recording": without_recording,
    "names of nodes": names_of_nodes,
    "second order": second_order,
    "twice": twice,
    "nested": nested,
    "node hooks": node_hooks,
    "node hooks without recording": node_hooks_without_recording,
    "regular, then full": lambda t: both_kinds(t, "register_backward_hook", "register_full_backward_hook"),
    "full, then regular": lambda t: both_kinds(t, "register_full_backward_hook", "register_backward_hook"),
    "no input requires grad, hook returns": lambda t: no_input_requires_grad(t, result=(t.ones(1), None)),
    "state hooks": state_hooks,
    "public state hook returns": lambda t: state_hook_returns(t, public=True),
    "private state hook returns": lambda t: state_hook_returns(t, public=False),
    "state hook twice": state_hook_twice,
    "load hooks": load_hooks,
    "load hook returns": load_hook_returns,
    "global hooks": global_hooks,
    "global hook on nodes": global_node_hook,
    "global always called": global_always_called,
    "registration hooks": registration_hooks,
}


def wrong_pre_hook(torch: Any) -> Any:
    m = scale(torch)
    m.register_full_backward_pre_hook(lambda m, go: (go[0], None))
    m(leaf(torch)).sum().backward()


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_as_pytorch(name: str) -> None:
    check(PROGRAMS[name])


def test_without_inputs_that_require_grad_hooks_run_at_the_outputs_and_warn() -> None:
    with pytest.warns(UserWarning, match="Full backward hook is firing .* no inputs require gradients"):
        seen, grad = no_input_requires_grad(tinytorch)
    ((name, (grad_inputs, grad_outputs)),) = seen
    assert name == "hook" and grad_inputs == (None, None)
    assert [each.tolist() for each in grad_outputs] == [[1, 1]]
    assert grad == 2


def test_hooks_on_a_node_warn_where_they_miss_gradients() -> None:
    with pytest.warns(FutureWarning, match="non-full backward hook when the forward contains multiple autograd Nodes"):
        assert node_hooks_on_several_nodes(tinytorch) == 1

    class Odd(nn.Module):
        def forward(self, x: Any, how: str) -> Any:
            return {"dict": {"y": x * 2}, "list": [x * 2], "two": (x * 2, x * 3)}[how]

    layer = Odd()
    layer.register_backward_hook(lambda *args: None)
    x = leaf(tinytorch)
    with pytest.warns(FutureWarning, match="does not return a single Tensor"):
        layer(x, "dict")
    with pytest.warns(FutureWarning, match="does not return a single Tensor"):
        layer(x, "list")
    with pytest.warns(FutureWarning, match="does not take as input a single Tensor"):
        layer(x, "two")

    class Two(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2, x * 3

    layer = Two()
    layer.register_backward_hook(lambda *args: None)
    with pytest.warns(FutureWarning, match="generated by different autograd Nodes"):
        layer(x)


def test_the_hook_of_a_dead_module_says_so() -> None:
    layer = nn.ReLU()
    hook = module_file._WrappedHook(lambda module: module, layer)
    assert hook() is layer
    assert copy.copy(hook)() is layer
    del layer
    with pytest.raises(RuntimeError, match="hook of a dead Module"):
        hook()


def test_the_graph_of_a_hooked_call_dies_without_the_collector() -> None:
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda *args: None)
    x = leaf(tinytorch)
    gc.disable()
    try:
        for backward in (True, False):
            y = layer(x)
            gone = weakref.ref(y.grad_fn)
            if backward:
                y.sum().backward()
            del y
            assert gone() is None
    finally:
        gc.enable()


def test_a_copied_module_has_hooks_of_its_own() -> None:
    layer = nn.Identity()
    seen: list[Any] = []
    layer.register_load_state_dict_pre_hook(lambda module, *rest: seen.append(module))
    copied = copy.deepcopy(layer)
    copied.load_state_dict({})
    assert seen == [copied] and seen[0] is copied
    layer._load_state_dict_pre_hooks.clear()
    assert copied._load_state_dict_pre_hooks


ON_NODES: dict[str, Any] = {
    "linear": lambda torch: (torch.nn.Linear(3, 2), torch.ones(4, 3, requires_grad=True)),
    "linear without bias": lambda torch: (torch.nn.Linear(3, 2, bias=False), torch.ones(4, 3)),
    "convolution": lambda torch: (torch.nn.Conv1d(2, 3, 2), torch.ones(1, 2, 4)),
    "layer norm": lambda torch: (torch.nn.LayerNorm(3), torch.eye(3).requires_grad_()),
    "container": lambda torch: (
        torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(3, 2)), torch.ones(4, 3, requires_grad=True),
    ),
    "activation": lambda torch: (torch.nn.Tanh(), torch.ones(3, requires_grad=True)),
}  # fmt: skip


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("case", ON_NODES)
def test_the_older_backward_hook_sees_one_nodes_gradients(case: str, replaced: bool) -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(0)
        layer, x = ON_NODES[case](torch)
        seen = []

        def hook(module: Any, grad_input: Any, grad_output: Any) -> Any:
            seen.append((type(module).__name__, grad_input, grad_output))
            return tuple([g if g is None else g * 2 for g in grad_input]) if replaced else None

        for each in layer.modules():
            each.register_backward_hook(hook)
        layer(x).sum().backward()
        return seen, x.grad, [p.grad for p in layer.parameters()]

    check(program)
