"""`torch.utils._pytree`: leaves, structures, JSON and errors, against PyTorch."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import time
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any

import pytest

import tinytorch
from tests.same import compared, expressions, same_as_pytorch
from tinytorch.utils import _pytree

Pair = namedtuple("Pair", "a b")


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Plain:
    a: int
    b: int


class Box:
    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second


def names(torch: Any) -> dict[str, Any]:
    """Return the names that an expression may use."""
    return {
        "p": importlib.import_module(f"{torch.__name__}.utils._pytree"),
        "torch": torch,
        "tree": [1, {"b": 2, "a": (3, None)}, Pair(4, OrderedDict(x=5)), deque([6], maxlen=3), defaultdict(list, q=7)],
        **{cls.__name__: cls for cls in (Pair, OrderedDict, defaultdict, deque)},
    }


SAME = """
    p.tree_leaves(tree); str(p.tree_structure(tree)); p.tree_unflatten("abcdefg", p.tree_structure(tree))[1]
    type(p.tree_unflatten(range(7), p.tree_structure(tree))[3]), type(p.tree_unflatten(range(7), p.tree_structure(tree))[4])
    str(p.tree_structure(3)), str(p.tree_structure(())), str(p.tree_structure({})), p.tree_flatten(None)[0]
    p.tree_leaves([range(3), "ab", torch.ones(2)])[:2]; p.tree_leaves([torch.ones(3).max(0), torch.ones(2).shape])
    p.tree_map(lambda x: x + 1, torch.ones(3).max(0)).indices; p.tree_map(lambda x, y: (x, y), [1, [2]], [3, [4]])
    p.tree_map(lambda x, y: (x, y), {"b": 1, "a": 2}, {"a": 3, "b": 4})
    p.tree_map(lambda x, y: (x, y), OrderedDict(a=1), dict(a=2)); p.tree_map(lambda x, y: (x, y), [1, 2], [[1], 2])
    p.tree_map(lambda x, y: (x, y), [1, [2]], [3, [4, 5]]); p.tree_map(lambda x, y: (x, y), [1, [2]], [1, 2])
    p.tree_map(lambda x, y: (x, y), [1], (1,)); p.tree_map(lambda x, y: (x, y), {"a": 1}, {"b": 1})
    p.tree_map(lambda x, y: (x, y), {"a": 1}, [2]); p.tree_map(lambda x, y: (x, y), Pair(1, 2), (1, 2))
    p.tree_map(lambda x: x * 2, defaultdict(list, a=1)).default_factory; p.tree_map_(lambda x: x + 1, [1, 2])
    p.tree_unflatten([1], p.tree_structure([1, 2])); p.tree_unflatten([1, 2, 3], p.tree_structure([1, 2]))
    p.tree_unflatten([1], 3); p.tree_map_only(int, lambda x: x + 1, [1, 2.0, "a", True])
    p.tree_map_only((int, str), lambda x: x * 2, [1, 2.0, "a"])
    p.tree_map_only(int | str, lambda x: x * 2, [1, 2.0, "a"]); p.tree_map_only(lambda x: x == 1, lambda x: 9, [1, 2])
    p.tree_map_only(torch.Tensor, lambda x: x * 2, {"x": torch.ones(2), "n": 3}); p.tree_map_only(3, lambda x: x, [1])
    p.map_only(int)(lambda x: x + 1)(5); p.tree_all(lambda x: x > 0, [1, 2]), p.tree_any(lambda x: x > 1, [1, [0]])
    p.tree_all_only(int, lambda x: x > 0, [1, -2.0]), p.tree_any_only(int, lambda x: x > 0, [-1, 2.0])
    list(p.tree_iter([1, (2,)])), p.tree_is_leaf([1]), p.tree_is_leaf(1), p.tree_is_leaf(None)
    p.tree_leaves([1, [2, 3]], is_leaf=lambda x: x == [2, 3])
    str(p.tree_structure([1, [2, 3]], is_leaf=lambda x: x == [2, 3]))
    p.tree_structure([1, {"a": 2}]) == p.tree_structure([3, {"a": 4}])
    p.tree_structure({"a": 1, "b": 2}) == p.tree_structure({"b": 1, "a": 2})
    hash(p.tree_structure([1])) == hash(p.tree_structure([2]))
    [(p.keystr(k), x) for k, x in p.tree_leaves_with_path({"a": [1, Pair(2, 3)], 3: 5})]
    p.tree_map_with_path(lambda k, x, y: (p.keystr(k), x, y), {"a": [1]}, {"a": [2]})
    [k.get(Pair(1, 2)) for k in p.tree_flatten_with_path(Pair(1, 2))[0][1][0]]
    (lambda s: (s.num_leaves, s.num_nodes, s.num_children, s.type, s.is_leaf(), str(s.child(1))))(p.tree_structure([1, {"a": 2}]))
    p.tree_structure([1, {"a": 2}]).unflatten([5, 6]), p.tree_structure([1, {"a": 2}]).flatten_up_to([[1], {"a": (2, 3)}])
"""  # noqa: E501


@pytest.mark.parametrize("line", expressions(SAME))
def test_as_pytorch(line: str) -> None:
    same_as_pytorch(lambda torch: eval(line, names(torch)))


def test_a_class_of_ones_own() -> None:
    _pytree.register_pytree_node(Box, lambda box: ([box.first, box.second], None), lambda items, _: Box(*items))
    assert _pytree.tree_leaves(Box(1, [2])) == [1, 2]
    assert str(_pytree.tree_structure(Box(1, 2))) == "TreeSpec(Box, None, [*,\n  *])"
    assert _pytree.tree_map(lambda x: x + 1, Box(1, [2])).second == [3]
    with pytest.raises(ValueError, match="already registered"):
        _pytree.register_pytree_node(Box, lambda box: ([], None), lambda items, _: Box(0, 0))
    with pytest.raises(ValueError, match="flatten_with_keys_fn"):
        _pytree.tree_leaves_with_path(Box(1, 2))
    doubled = tinytorch.func.vmap(lambda box: Box(box.first * 2, box.second))(
        Box(tinytorch.ones(3), tinytorch.zeros(3))
    )
    assert doubled.first.tolist() == [2.0, 2.0, 2.0]


TREES = {
    "list": [1, [2, 3]], "dictionaries": {"b": 1, "a": OrderedDict(y=2, x=(3,))},
    "others": [deque([1], maxlen=3), defaultdict(list, {"q": 2}), None], "a size": tinytorch.Size([1, 2]),
    "keys that are no text": {1: 2, (1, 2): 3}, "members of an enumeration": {Colour.RED: 1},
}  # fmt: skip


@pytest.mark.parametrize("name", TREES)
@compared(to_the_word=True)
def test_structures_as_text(torch: Any, name: str) -> Any:
    p = importlib.import_module(f"{torch.__name__}.utils._pytree")
    tree = torch.Size([1, 2]) if name == "a size" else TREES[name]
    spec = p.tree_structure(tree)
    text = p.treespec_dumps(spec)
    same = p.treespec_loads(text) == spec if name != "keys that are no text" else None
    return text, same, p.treespec_pprint(spec), [type(each).__name__ for each in spec.children_specs]


def registered(torch: Any) -> Any:
    p = importlib.import_module(f"{torch.__name__}.utils._pytree")

    @dataclasses.dataclass
    class Point:
        x: Any
        y: Any = None

    @dataclasses.dataclass(frozen=True)
    class Setting:
        name: str

    class Other:
        pass

    Triple = namedtuple("Triple", "a b c")
    p.register_dataclass(Point, serialized_type_name="a.Point")
    p.register_constant(Setting)
    p._register_namedtuple(Triple, serialized_type_name="a.Triple")
    to = {"to_dumpable_context": lambda _: "told", "from_dumpable_context": lambda _: None}
    p.register_pytree_node(Other, lambda _: ([1], None), lambda _, __: Other(), serialized_type_name="a.Other", **to)
    return p, Point, Setting, Triple, Other


REGISTERED: list[Callable[..., Any]] = [
    lambda p, Point, *_: [p.keystr(path) for path, _ in p.tree_flatten_with_path(Point([1], 2))[0]],
    lambda p, Point, *_: (p.tree_map(str, Point([1], 2)).x, p.tree_map(str, Point([1])).y),
    lambda p, Point, *_: p.treespec_dumps(p.tree_structure(Point(1, [2]))),
    lambda p, Point, *_: p.treespec_loads(p.treespec_dumps(p.tree_structure(Point(1)))) == p.tree_structure(Point(1)),
    lambda p, Point, Setting, *_: (p.tree_leaves([Setting("a"), 1]), p.is_constant_class(Setting)),
    lambda p, Point, Setting, *_: p.tree_structure(Setting("a")) == p.tree_structure(Setting("b")),
    lambda p, Point, Setting, *_: p.treespec_dumps(p.tree_structure(Setting("a"))),
    lambda p, Point, Setting, Triple, _: p.treespec_dumps(p.tree_structure(Triple(1, 2, [3]))),
    lambda p, Point, Setting, Triple, _: p.treespec_pprint(p.tree_structure(Triple(1, 2, [3]))),
    lambda p, Point, Setting, Triple, Other: p.treespec_dumps(p.tree_structure([Other()])),
    lambda p, Point, Setting, Triple, Other: (p._deregister_pytree_node(Other), p.tree_is_leaf(Other())),
    lambda p, *_: p.treespec_dumps(p.tree_structure(Pair(1, 2))),
    lambda p, *_: (p.treespec_dumps(p.tree_structure(1)), p.treespec_loads('[2, {}]')),
    lambda p, *_: p.treespec_loads('[1, {"type": "x", "context": null, "children_spec": []}]'),
    lambda p, *_: p.treespec_dumps(p.tree_structure(1), 3), lambda p, *_: p.treespec_dumps(1),
    lambda p, *_: p.register_constant(Box), lambda p, *_: p.register_dataclass(int),
    lambda p, *_: p.register_dataclass(Plain, field_names=["a"]),
    lambda p, *_: p.register_dataclass(Plain, field_names=["a", "c"], drop_field_names=["b"]),
    lambda p, *_: p.register_pytree_node(Plain, None, None, to_dumpable_context=str),
    lambda p, *_: p._broadcast_to_and_flatten([1, 2], p.tree_structure([3, (4, 5)])),
    lambda p, *_: p.arg_tree_leaves(1, [2], k={3: 4}),
    lambda p, *_: p._broadcast_to_and_flatten([1, 2], p.tree_structure([3])),
    lambda p, *_: p.key_get({"a": [1, 2]}, (p.MappingKey("a"), p.SequenceKey(1))),
    lambda p, *_: [(f(Pair), f(Pair(1, 2)), f(time.gmtime()), f((1,))) for f in (p.is_namedtuple, p.is_structseq)],
    lambda p, *_: (p.treespec_leaf(), p.treespec_tuple([p.treespec_leaf()]), p.treespec_dict(a=p.treespec_leaf())),
    lambda p, *_: (p._dict_flatten({"a": 1}), p._list_flatten_with_keys([2]), p._tuple_unflatten([1], None)),
]  # fmt: skip


@pytest.mark.parametrize("which", range(len(REGISTERED)))
@compared
def test_registered_classes(torch: Any, which: int) -> Any:
    return repr(REGISTERED[which](*registered(torch)))
