"""Pictures of graphs: what is in them, that all three notations are well formed, and that the drawing is clean."""

from __future__ import annotations

import gc
import random
import re
import weakref
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tinytorch import nn
from tinytorch.autograd import picture

SVG = "{http://www.w3.org/2000/svg}"


def leaf(*shape):
    return tinytorch.ones(shape, requires_grad=True)


def boxes_and_arrows(mermaid):
    """Return the lines of text of each box and the arrows, from the Mermaid text."""
    boxes = {k: label.split("<br/>") for k, label in re.findall(r'^    n(\d+)\W+"(.*)"\W+:::', mermaid, re.M)}
    arrows = re.findall(r'^    n(\d+) -->(?:\|"\[(\d+)\]"\|)? n(\d+)$', mermaid, re.M)
    return boxes, arrows


def titles(drawn):
    return [lines[0] for lines in boxes_and_arrows(drawn.mermaid)[0].values()]


# What is in it ------------------------------------------------------------------------------------


def test_a_small_graph():
    w, x, b = leaf(3), leaf(3), leaf()
    drawn = picture({"y": (w * x).sum() + b}, {"w": w, "x": x, "b": b})
    boxes, arrows = boxes_and_arrows(drawn.mermaid)
    assert list(boxes.values()) == [
        ["w", "float32 (3,)"], ["x", "float32 (3,)"], ["MulBackward0", "float32 (3,)"],
        ["SumBackward0", "float32 ()"], ["b", "float32 ()"], ["AddBackward0", "float32 ()"], ["y"],
    ]  # fmt: skip
    ways = [(boxes[a][0], boxes[b][0]) for a, _, b in arrows]
    assert ways == [
        ("w", "MulBackward0"), ("x", "MulBackward0"), ("MulBackward0", "SumBackward0"),
        ("SumBackward0", "AddBackward0"), ("b", "AddBackward0"), ("AddBackward0", "y"),
    ]  # fmt: skip
    assert repr(drawn) == "Picture(3 leaves, 3 operations, 1 result)"
    assert str(drawn) == drawn.mermaid


def test_names_come_from_a_module_a_dictionary_or_pairs():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    out = model(tinytorch.ones(4, 2)).sum()
    expected = picture(out, model).mermaid
    assert '"0.weight<br/>float32 (3, 2)"' in expected
    assert picture(out, dict(model.named_parameters())).mermaid == expected
    assert picture(out, model.named_parameters()).mermaid == expected
    assert titles(picture(out)).count("Parameter") == 4
    assert titles(picture(leaf() * 2)) == ["Tensor", "MulBackward0", "result"]


def test_results_on_the_way_can_be_named():
    x = leaf(2)
    h = x * 2
    boxes, _ = boxes_and_arrows(picture(h.sum(), {"x": x, "h": h}).mermaid)
    assert boxes["1"] == ["MulBackward0", "h: float32 (2,)"]


def test_names_of_what_is_not_in_the_graph_do_no_harm():
    x, frozen = leaf(2), tinytorch.ones(2)
    names = {"x": x, "frozen": frozen, "other": leaf(1)}
    assert titles(picture(x * frozen, names)) == ["x", "MulBackward0", "result"]


def test_a_node_is_drawn_once_and_an_input_used_twice_has_two_arrows():
    x = leaf(2)
    y = x * x
    boxes, arrows = boxes_and_arrows(picture([y + y, y]).mermaid)
    assert [lines[0] for lines in boxes.values()] == ["Tensor", "MulBackward0", "AddBackward0", "result 0", "result 1"]
    assert [(a, b) for a, _, b in arrows] == [("0", "1"), ("0", "1"), ("1", "2"), ("1", "2"), ("2", "3"), ("1", "4")]


def test_arrows_from_an_operation_of_several_outputs_say_which():
    a, _, c = leaf(6).split(2)
    boxes, arrows = boxes_and_arrows(picture(c * a).mermaid)
    assert boxes["1"] == ["SplitBackward0", *["float32 (2,)"] * 3]
    assert arrows == [("0", "", "1"), ("1", "2", "2"), ("1", "0", "2"), ("2", "", "3")]
    many = leaf(9).unbind()
    assert boxes_and_arrows(picture(many[8]).mermaid)[0]["1"][-1] == "… 9 outputs"


def test_dtypes_are_those_of_the_outputs():
    x = tinytorch.ones(2, dtype=tinytorch.float64, requires_grad=True)
    boxes, _ = boxes_and_arrows(picture(x.float() * 2).mermaid)
    assert [lines[-1] for lines in boxes.values()][:2] == ["float64 (2,)", "float32 (2,)"]


def test_a_leaf_alone_is_a_picture():
    x = leaf(2)
    assert titles(picture(x, {"x": x})) == ["x", "result"]
    ET.fromstring(picture(x).svg)


def test_a_write_in_place_is_drawn():
    x = leaf(2, 2)
    y = x * 1
    y[0] = leaf(2)
    assert {"CopySlices", "MulBackward0"} <= set(titles(picture(y.sum())))


def test_saved_tensors():
    x, y = leaf(2, 3), leaf(3, 4)
    z = (x @ y).exp()
    z_graph = z.sum()
    boxes, _ = boxes_and_arrows(picture(z_graph, show_saved=True).mermaid)
    assert sorted(boxes["2"][2:]) == ["keeps x: float32 (2, 3)", "keeps y: float32 (3, 4)"]
    assert boxes["3"][2:] == ["keeps out: float32 (2, 4)"]
    z_graph.backward()
    boxes, _ = boxes_and_arrows(picture(z_graph, show_saved=True).mermaid)
    assert boxes["3"][2:] == ["freed by backward"]


def test_saved_tensors_of_a_function():
    class Twice(tinytorch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, None, y)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2, None

    boxes, _ = boxes_and_arrows(picture(Twice.apply(leaf(2), tinytorch.ones(3).long()), show_saved=True).mermaid)
    assert boxes["1"][2:] == ["keeps [0]: float32 (2,)", "keeps [2]: int64 (3,)"]


def test_saved_tensors_that_hooks_packed():
    x = leaf(2)
    with tinytorch.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), tinytorch.tensor):
        y = x.exp()
    boxes, _ = boxes_and_arrows(picture(y, show_saved=True).mermaid)
    assert boxes["1"][2:] == ["keeps out: packed by a hook"]


def test_it_keeps_nothing_alive():
    x = leaf(2)
    y = x * 2
    alive = weakref.ref(y.grad_fn)
    drawn = picture(y.sum(), {"y": y})
    del y
    gc.collect()
    assert alive() is None
    assert "y: float32 (2,)" in drawn.mermaid


@needs_oracle
def test_nodes_and_arrows_are_pytorchs():
    def graph(torch):
        x, w = torch.ones(3, 4, requires_grad=True), torch.ones(4, 6, requires_grad=True)
        a, b = (x @ w).tanh().split(3, dim=1)
        h = (a * b).softmax(1)
        h = h + h.mean()
        return torch.cat([h, h.t().exp()], 1).relu().sum() / x.var()

    def walk(root):
        """Return the nodes that lead to `root`, inputs first, and what they are called."""
        order, stack = {}, [root]
        while stack:
            node = stack[-1]
            waiting = [each for each, _ in node.next_functions if each and each not in order]
            if waiting:
                stack += reversed(waiting)
            else:
                order.setdefault(stack.pop(), len(order))
        return order

    theirs = graph(torch)
    order = walk(theirs.grad_fn)
    boxes, arrows = boxes_and_arrows(picture(graph(tinytorch)).mermaid)
    names = [node.name().replace("torch::autograd::AccumulateGrad", "Tensor") for node in order]
    assert [lines[0] for lines in boxes.values()] == [*names, "result"]
    expected = [(order[each], k) for k, node in enumerate(order) for each, _ in node.next_functions if each]
    assert [(int(a), int(b)) for a, _, b in arrows[:-1]] == expected


# What is refused ----------------------------------------------------------------------------------


def test_what_has_no_graph_is_refused():
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        picture(tinytorch.ones(2))
    with pytest.raises(RuntimeError, match="element 1 of tensors does not require grad"):
        picture([leaf(), tinytorch.ones(2)])
    with pytest.raises(ValueError, match="no tensors"):
        picture([])


@pytest.mark.parametrize("tensors", [[3.0], {"x": None}, {1: leaf()}])
def test_what_is_no_tensor_is_refused(tensors):
    with pytest.raises(TypeError, match="expected a name and a Tensor"):
        picture(tensors)


@pytest.mark.parametrize("params", [[leaf()], ["xy"], {"x": 1.0}, [("x", leaf(), 1)]])
def test_names_of_another_form_are_refused(params):
    with pytest.raises(TypeError, match="expected"):
        picture(leaf() * 2, params)


# The three notations ------------------------------------------------------------------------------


def random_graph(seed, count):
    """Return a graph of about `count` nodes: mostly near neighbours, some far, leaves, several results."""
    draw = random.Random(seed)
    made = [leaf(2) for _ in range(max(2, count // 6))]
    while len(made) < count:
        near = made[-12:] if draw.random() < 0.8 else made
        x, y = draw.choice(near), draw.choice(near)
        choice = draw.random()
        made += [x * y] if choice < 0.5 else [x.exp()] if choice < 0.8 else (x * y).sort()[:1]
    return picture(made[-draw.randint(1, 6) :], {f"p.{k}": t for k, t in enumerate(made[: count // 6])})


ODD = 'a"b<c>&amp;#35;\\n`[](){}|;-->%%ü漢\n\x00\ud800\ufffe]'


def test_any_name_goes():
    x = leaf(2)
    h = x * 2
    drawn = picture({ODD: h.sum()}, {ODD: x, ODD + ODD: h})
    texts = [each.text for each in ET.fromstring(drawn.svg).iter(f"{SVG}text")]
    shown = re.sub("[\n\x00\ud800\ufffe]", "\ufffd", ODD)
    assert texts.count(shown) == 2
    assert f"{shown}{shown}: float32 (2,)" in texts
    for line in drawn.mermaid.splitlines():
        assert line.count('"') in (0, 2)
        assert "`" not in line and "\\" not in line
    for label in re.findall(r'label="((?:[^"\\]|\\.)*)"', drawn.dot):
        assert "\n" not in label
    assert f'label="{shown}"'.replace("\\", "\\\\").replace('a"b', 'a\\"b') in drawn.dot
    drawn.svg.encode(), drawn.dot.encode(), drawn.mermaid.encode()


@pytest.mark.parametrize("seed", range(5))
def test_dot_and_mermaid_say_the_same(seed):
    drawn = random_graph(seed, 60)
    boxes, arrows = boxes_and_arrows(drawn.mermaid)
    assert len(arrows) == drawn.mermaid.count("-->")
    dot = re.findall(r'^    n(\d+) \[label="(.*?)", shape', drawn.dot, re.M)
    assert {k: label.split("\\n") for k, label in dot} == boxes
    ways = re.findall(r'^    n(\d+) -> n(\d+)(?: \[label="\[(\d+)\]"\])?;$', drawn.dot, re.M)
    assert [(a, k, b) for a, b, k in ways] == arrows
    assert drawn.dot.startswith("digraph {") and drawn.dot.endswith("}")


def test_the_same_graph_gives_the_same_text():
    one, two = random_graph(1, 80), random_graph(1, 80)
    assert (one.svg, one.dot, one.mermaid) == (two.svg, two.dot, two.mermaid)


def test_save_goes_by_the_suffix(tmp_path):
    drawn = picture(leaf(2).exp())
    for name, expected in {
        "a.svg": drawn.svg, "b.dot": drawn.dot, "c.gv": drawn.dot, "d.mmd": drawn.mermaid,
        "e.md": f"```mermaid\n{drawn.mermaid}\n```", "F.SVG": drawn.svg,
    }.items():  # fmt: skip
        drawn.save(tmp_path / name)
        assert (tmp_path / name).read_text("utf-8") == expected + "\n"
    drawn.save(str(tmp_path / "g.svg"))
    with pytest.raises(ValueError, match=r"not as '\.png'"):
        drawn.save(tmp_path / "h.png")
    assert not (tmp_path / "h.png").exists()


def test_notebooks_show_the_drawing():
    drawn = picture(leaf(2).exp())
    assert drawn._repr_svg_() == drawn.svg


# The drawing --------------------------------------------------------------------------------------


class Drawing:
    """What stands where in an SVG: boxes as (left, top, right, bottom), and lines as lists of points."""

    def __init__(self, drawn):
        root = ET.fromstring(drawn.svg)
        self.view = [float(each) for each in root.get("viewBox").split()]
        self.boxes = []
        for rect in root.iter(f"{SVG}rect"):
            x, y, width, height = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
            self.boxes.append((x, y, x + width, y + height))
        self.lines, self.heads, self.uprights = [], [], []
        for path in root.iter(f"{SVG}path"):
            self.read(path.get("d"))
        self.texts = [each.text for each in root.iter(f"{SVG}text")]

    def read(self, text):
        """Read a path: M and C and V as they are written here, and the heads of arrows."""
        x = y = 0.0
        starts = []
        for command, numbers in re.findall(r"([MCV]|m-3-6l3 6 3-6)([-\d. ]*)", text):
            values = [float(each) for each in numbers.split()]
            if command == "M":
                x, y = values
                starts.append((x, y))
            elif command == "V":
                self.uprights.append((x, y, values[0]))
                y = values[0]
            elif command == "C":
                assert values[0] == x and values[2] == values[4]  # upright at both ends
                x, y = values[4:]
            else:
                self.heads.append((x, y))
        self.lines.append(starts)


def disjoint(boxes):
    """Return whether no two rectangles touch (swept from the top)."""
    events = sorted((edge, k, box) for box in boxes for k, edge in ((1, box[1]), (0, box[3])))
    standing = []
    for _, opens, box in events:
        if not opens:
            standing.remove(box)
            continue
        if any(box[0] <= other[2] and other[0] <= box[2] for other in standing):
            return False
        standing.append(box)
    return True


def block(model_dim=8):
    """Return a picture of a transformer block with its loss."""
    torch, functional = tinytorch, nn.functional
    norm1, norm2 = nn.LayerNorm(model_dim), nn.LayerNorm(model_dim)
    qkv, proj = nn.Linear(model_dim, 3 * model_dim), nn.Linear(model_dim, model_dim)
    up, down = nn.Linear(model_dim, 4 * model_dim), nn.Linear(4 * model_dim, model_dim)
    x = torch.randn(1, 4, model_dim)
    q, k, v = qkv(norm1(x)).split(model_dim, dim=2)
    x = x + proj((q @ k.transpose(1, 2)).softmax(-1) @ v)
    x = x + down(functional.gelu(up(norm2(x))))
    modules = {"norm1": norm1, "qkv": qkv, "proj": proj, "norm2": norm2, "up": up, "down": down}
    return picture({"loss": x.square().mean()}, nn.ModuleDict(modules), show_saved=True)


def shared_weight():
    """Return a picture of a recurrent net: one weight leads to every step, and every step to the end."""
    w, h, steps = leaf(2, 2), leaf(2), []
    for _ in range(40):
        h = (w @ h).tanh()
        steps.append(h)
    return picture(tinytorch.stack(steps).sum(), {"w": w})


DRAWN = [
    *[pytest.param(lambda seed=seed: random_graph(seed, 20 + 30 * seed), id=f"random{seed}") for seed in range(6)],
    pytest.param(block, id="block"),
    pytest.param(shared_weight, id="recurrent"),
    pytest.param(lambda: picture(tinytorch.stack([leaf() * 2 for _ in range(50)]).sum()), id="wide"),
]


@pytest.mark.parametrize("make", DRAWN)
def test_a_clean_drawing(make):
    drawn = make()
    drawing = Drawing(drawn)
    boxes, arrows = boxes_and_arrows(drawn.mermaid)
    legend = len({kind for kind in ("leaf", "operation", "result") if f":::{kind}" in drawn.mermaid})
    assert len(drawing.boxes) == len(boxes) + legend
    assert disjoint(drawing.boxes)
    left, top, width, height = drawing.view
    for box in drawing.boxes:
        assert left < box[0] and top < box[1] and box[2] < left + width and box[3] < top + height
    # Each arrow ends on the upper side of its target, with nothing but downward ways before.
    assert len(drawing.heads) == len(arrows)
    tops, bottoms = {}, {}
    for k, (x1, y1, x2, y2) in enumerate(drawing.boxes[: len(boxes)]):
        tops.setdefault(y1, []).append((x1, x2, k))
        bottoms.setdefault(y2, []).append((x1, x2, k))

    def at(sides, x, y):
        (found,) = [k for x1, x2, k in sides.get(y, []) if x1 < x < x2]
        return str(found)

    ends = sorted(at(tops, x, y) for x, y in drawing.heads)
    assert ends == sorted(b for _, _, b in arrows)
    # Each line starts on the lower side of its source.
    assert sorted(at(bottoms, *starts[0]) for starts in drawing.lines) == sorted(
        a for a, _ in {(a, k) for a, k, _ in arrows}
    )
    # Nothing passes through a box.
    for x, y, end in drawing.uprights:
        assert y <= end
        assert not any(x1 < x < x2 and y < y2 and y1 < end for x1, y1, x2, y2 in drawing.boxes)
    assert {line for lines in boxes.values() for line in lines} <= set(drawing.texts)


def test_a_chain_is_drawn_straight_down():
    x = leaf(2)
    for _ in range(20):
        x = x.exp()
    centres = {(x1 + x2) / 2 for x1, _, x2, _ in Drawing(picture(x)).boxes[:22]}
    assert max(centres) - min(centres) <= 1


def test_branches_that_need_not_cross_do_not():
    left, right = leaf(2), leaf(2)
    for _ in range(5):
        left, right = left.exp(), right.tanh()
    drawn = picture([left, right])
    drawing = Drawing(drawn)
    _, arrows = boxes_and_arrows(drawn.mermaid)
    centres = [(x1 + x2) / 2 for x1, _, x2, _ in drawing.boxes]
    assert all(abs(centres[int(a)] - centres[int(b)]) <= 1 for a, _, b in arrows)


def test_text_fits_into_its_box():
    """Letters of monospace fonts are about 0.6 of their height wide (at most 0.61 in those that are asked for)."""
    root = ET.fromstring(block().svg)
    for rect, text in pairwise(list(root)):
        if rect.tag == f"{SVG}rect":
            assert max(len(each.text) for each in text) * 12 * 0.61 < float(rect.get("width"))


def test_colours_can_be_read():
    """Text on boxes, and lines and borders on white and on black pages, have WCAG's contrast."""

    def luminance(colour):
        digits = colour[1:] if len(colour) == 7 else "".join(2 * each for each in colour[1:])
        parts = [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one, two):
        high, low = sorted((luminance(one), luminance(two)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    svg = picture(leaf(2).exp()).svg
    fills = re.findall(r'rx="\d+" fill="(#\w+)"', svg)
    assert len(set(fills)) == 3
    for fill in fills:
        assert contrast(fill, "#111") > 7
    for page in ("#fff", "#000"):
        assert contrast("#767676", page) > 3  # lines
    for fill, border in re.findall(r'fill="(#\w+)" stroke="(#\w+)"', svg):
        assert contrast(border, fill) > 3


# Size ---------------------------------------------------------------------------------------------


def test_a_chain_of_100000_nodes():
    x = leaf()
    for _ in range(100_000):
        x = x + 1
    drawn = picture(x)
    assert drawn.mermaid.count("AddBackward0") == drawn.dot.count("AddBackward0") == 100_000


def test_a_graph_of_5000_nodes():
    drawing = Drawing(random_graph(0, 10_000))
    assert disjoint(drawing.boxes)
    assert len(drawing.boxes) > 5000


def test_many_long_ways_do_not_blow_it_up():
    """Lines from every step to the end would pass the square of the number of layers: the longest go straight."""
    w, h, steps = leaf(2, 2), leaf(2), []
    for _ in range(500):
        h = (w @ h).tanh()
        steps.append(h)
    drawn = picture(tinytorch.stack(steps).sum())
    assert len(drawn.svg) < 1000 * len(drawn.mermaid.splitlines())
    drawing = Drawing(drawn)
    assert disjoint(drawing.boxes)
    assert len(drawing.heads) == drawn.mermaid.count("-->")
