"""`inspect.draw`: which boxes, lines and repetitions it finds, and that nothing overlaps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import tinytorch as torch
import tinytorch.nn.functional as F
from tinytorch import inspect, nn
from tinytorch.inspect import drawing

# Models -------------------------------------------------------------------------------------------


class BasicBlock(nn.Module):
    def __init__(self, i: int, o: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(o)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(o)
        self.downsample = None if stride == 1 else nn.Sequential(nn.Conv2d(i, o, 1, stride), nn.BatchNorm2d(o))

    def forward(self, x: Any) -> Any:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(BasicBlock(8, 8), BasicBlock(8, 8))
        self.layer2 = nn.Sequential(BasicBlock(8, 16, 2), BasicBlock(16, 16))
        self.fc = nn.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        x = self.layer2(self.layer1(self.maxpool(self.conv1(x))))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()

        def double(i: int, o: int) -> nn.Module:
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU(), nn.Conv2d(o, o, 3, padding=1), nn.ReLU())

        self.down1, self.down2, self.bottom = double(1, 4), double(4, 8), double(8, 16)
        self.pool = nn.MaxPool2d(2)
        self.up2, self.up1 = nn.ConvTranspose2d(16, 8, 2, 2), nn.ConvTranspose2d(8, 4, 2, 2)
        self.dec2, self.dec1 = double(16, 8), double(8, 4)

    def forward(self, image: Any) -> Any:
        a = self.down1(image)
        b = self.down2(self.pool(a))
        x = self.dec2(torch.cat([self.up2(self.bottom(self.pool(b))), b], 1))
        return self.dec1(torch.cat([self.up1(x), a], 1))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Any) -> Any:
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(C, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.drop(self.project(y.transpose(1, 2).reshape(B, T, C)))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(width), Attention(width, 2), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, blocks: int = 12) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(50, 16), nn.Embedding(32, 16)
        self.h = nn.ModuleList([Block(16) for _ in range(blocks)])
        self.ln_f, self.lm_head = nn.LayerNorm(16), nn.Linear(16, 50, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, idx: Any) -> Any:
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 16, batch_first=True, bidirectional=True)
        self.out = nn.Linear(32, 5)

    def forward(self, tokens: Any) -> Any:
        y, (h, _) = self.lstm(self.embed(tokens))
        return {"tags": self.out(y), "state": h.mean(0)}


class Loop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(4, 8)

    def forward(self, x: Any, h: Any, c: Any) -> Any:
        outputs = []
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
            outputs.append(h)
        return torch.stack(outputs, 1), c


class Towers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.text = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        self.image = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.shared = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, text: Any, image: Any, mask: Any) -> Any:
        a, b = self.shared(self.text(text) * mask), self.shared(self.image(image))
        return a, b, (F.normalize(a) @ F.normalize(b).T) * self.scale


MODELS: dict[str, Any] = {
    "mlp": lambda: (nn.Sequential(nn.Flatten(), nn.Linear(9, 4), nn.ReLU(), nn.Linear(4, 2)), (2, 1, 3, 3)),
    "resnet": lambda: (ResNet(), torch.rand(1, 3, 32, 32)),
    "unet": lambda: (UNet(), torch.rand(1, 1, 16, 16)),
    "gpt": lambda: (GPT(), torch.zeros(2, 7, dtype=torch.int64)),
    "tagger": lambda: (Tagger(), torch.zeros(2, 7, dtype=torch.int64)),
    "loop": lambda: (Loop(), (torch.rand(2, 10, 4), torch.rand(2, 8), torch.rand(2, 8))),
    "towers": lambda: (Towers(), (torch.rand(4, 8), torch.rand(4, 3, 8, 8), torch.rand(4, 1))),
    "transformer": lambda: (nn.Transformer(8, 2, 2, 2, 16, batch_first=True), [(1, 5, 8), (1, 4, 8)]),
    "layer": lambda: (nn.Linear(4, 2), (3, 4)),
}


def recorded(model: Any, *args: Any, fold: bool = False, **options: Any) -> Any:
    """Return the recorded call of a model."""
    kept = []
    original = drawing.Drawing.__init__

    def init(self: Any, call: Any) -> None:
        kept.append(call)
        original(self, call)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing.Drawing, "__init__", init)
        inspect.draw(model, *args, fold=fold, **options)
    return kept[0]


def connections(call: Any) -> set[tuple[str, str, str]]:
    """Return (name of the source, shape, name of the target) of all lines between boxes."""

    def name(box: Any) -> str:
        return ".".join(each.name for each in box.path()[1:] if each.name).replace("\n", " ")

    return {
        (name(call.source[value]), call.shape[value], name(box)) for box in call.page.boxes() for value in box.inputs
    }


# Which boxes and lines ----------------------------------------------------------------------------


def test_lines_of_a_residual_block() -> None:
    assert connections(recorded(BasicBlock(2, 4, 2), (1, 2, 4, 4))) == {
        ("x", "[1, 2, 4, 4]", "conv1"),
        ("x", "[1, 2, 4, 4]", "downsample.0"),
        ("conv1", "[1, 4, 2, 2]", "bn1"),
        ("bn1", "[1, 4, 2, 2]", "relu"),
        ("relu", "[1, 4, 2, 2]", "conv2"),
        ("conv2", "[1, 4, 2, 2]", "bn2"),
        ("downsample.0", "[1, 4, 2, 2]", "downsample.1"),
        ("bn2", "[1, 4, 2, 2]", "add"),
        ("downsample.1", "[1, 4, 2, 2]", "add"),
        ("add", "[1, 4, 2, 2]", "relu"),
        ("relu", "[1, 4, 2, 2]", "output"),
    }


def test_lines_of_several_inputs_and_outputs_and_of_a_shared_layer() -> None:
    call = recorded(*MODELS["towers"]())
    found = connections(call)
    assert {source for source, _, target in found if target == "shared"} == {"mul", "image.2"}
    assert {target for source, _, target in found if source == "mask"} == {"mul"}
    assert {target for _, _, target in found if target.startswith("output")} == {"output[0]", "output[1]", "output[2]"}
    assert [box.note for box in call.page.boxes() if box.name == "shared"] == ["", "shared"]
    assert ("mm mul(scale)", "[4, 4]", "output[2]") in found


def test_a_dict_of_outputs_and_outputs_of_one_layer() -> None:
    assert {("lstm", "[2, 7, 32]", "out"), ("lstm", "[2, 2, 16]", "mean")} <= connections(recorded(*MODELS["tagger"]()))


def test_operations_that_follow_each_other_are_one_box_and_parameters_are_named() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Parameter(torch.zeros(1, 1, 3))

        def forward(self, x: Any) -> Any:
            unused = x * 5  # noqa: F841
            return torch.cat([self.token.expand(2, 1, 3), x], 1).exp().sum(1)

    assert connections(recorded(Model(), (2, 4, 3))) == {
        ("x", "[2, 4, 3]", "cat(token) exp sum"),
        ("cat(token) exp sum", "[2, 3]", "output"),
    }


def test_writes_lead_to_what_was_written() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(3, 2), nn.Linear(4, 1)

        def forward(self, x: Any) -> Any:
            out = torch.zeros(5, 4)
            out[:, :2] = self.a(x)
            return self.b(out)

    assert ("copy", "[5, 4]", "b") in connections(recorded(Model(), (5, 3)))


def test_a_layer_that_returns_its_input_is_on_the_way() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop, self.a = nn.Dropout(), nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return self.a(self.drop(x)) + x

    found = connections(recorded(Model(), (5, 3)))
    assert ("x", "[5, 3]", "drop") in found and ("drop", "[5, 3]", "a") in found and ("x", "[5, 3]", "add") in found


def test_a_call_that_raises_is_not_drawn_and_a_tensor_may_leave_by_an_attribute() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wrong, self.right, self.last = (
                nn.Linear(4, 3),
                nn.Sequential(nn.Linear(3, 3), nn.ReLU()),
                nn.Linear(3, 1),
            )

        def forward(self, x: Any) -> Any:
            kept = []
            handle = self.right[0].register_forward_hook(lambda module, args, output: kept.append(output))
            try:
                y = self.wrong(x)
            except RuntimeError:
                y = self.right(x)
            handle.remove()
            return self.last(y + kept[0])

    found = connections(recorded(Model(), (2, 3)))
    assert not any("wrong" in line for line in found)
    assert {("right.0", "[2, 3]", "add"), ("right.1", "[2, 3]", "add"), ("add", "[2, 3]", "last")} <= found
    assert "wrong" not in inspect.draw(Model(), (2, 3)).svg


def test_depth() -> None:
    names = [box.name for box in recorded(*MODELS["gpt"](), depth=1).page.boxes()]
    assert names == ["idx", "wte", "wpe", "add", *[f"h.{k}" for k in range(12)], "ln_f", "lm_head", "output"]
    whole = recorded(*MODELS["gpt"](), depth=0)
    assert connections(whole) == {("idx", "[2, 7]", ""), ("", "[2, 7, 50]", "output")}


def test_the_layer_alone() -> None:
    assert inspect.draw(nn.Linear(4, 2), (3, 4)).svg.count("Linear  ") == 0
    assert connections(recorded(nn.Linear(4, 2), (3, 4))) == {("input", "[3, 4]", ""), ("", "[3, 2]", "output")}


# Repetitions --------------------------------------------------------------------------------------


def folded(model: Any, *args: Any) -> list[tuple[str, int]]:
    return [(node.name, node.times) for node in frames(recorded(model, *args, fold=True).page) if node.times > 1]


def frames(node: Any) -> Iterator[Any]:
    yield node
    for child in node.children:
        yield from frames(child)


def test_repetitions_are_drawn_once() -> None:
    assert folded(*MODELS["gpt"]()) == [("h.0 … 11", 12)]
    assert folded(*MODELS["resnet"]()) == [("0, 1", 2)]
    assert folded(*MODELS["loop"]()) == [("", 10)]
    layers = [layer for _ in range(10) for layer in (nn.Linear(6, 6), nn.Tanh())]
    assert folded(nn.Sequential(*layers, nn.Linear(6, 1)), (2, 6)) == [("0 … 19", 10)]
    assert "h.0 … 11: Block" in inspect.draw(*MODELS["gpt"]()).svg
    assert "h.7: Block" in inspect.draw(*MODELS["gpt"](), fold=False).svg


def test_the_lines_around_a_repetition() -> None:
    found = connections(recorded(*MODELS["gpt"](), fold=True))
    assert ("add", "[2, 7, 16]", "h.0 … 11.ln_1") in found and ("h.0 … 11.add", "[2, 7, 16]", "ln_f") in found
    loop = connections(recorded(*MODELS["loop"](), fold=True))
    assert {("h", "[2, 8]", "cell"), ("c", "[2, 8]", "cell"), ("cell", "[2, 8]", "stack")} <= loop
    assert ("cell", "[2, 8]", "output[1]") in loop


class Chain(nn.Module):
    """Blocks of one kind; `how` says what is irregular."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        widths = [5, 5, 7, 5] if how == "wider" else [5] * 4
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(5, w), nn.ReLU(), nn.Linear(w, 5)) for w in widths])

    def forward(self, x: Any) -> Any:
        if self.how == "side by side":
            return torch.stack([block(x) for block in self.blocks])
        seen = []
        for block in self.blocks:
            x = block(x)
            seen.append(x)
        return x + seen[1] if self.how == "taps" else x


def test_what_differs_is_not_drawn_as_a_repetition() -> None:
    assert folded(Chain("regular"), (2, 5)) == [("blocks.0 … 3", 4)]
    assert folded(Chain("wider"), (2, 5)) == [("blocks.0, 1", 2)]
    # The second block's output is used at the end, too: only the two after it are alike.
    assert ("blocks.0 … 3", 4) not in folded(Chain("taps"), (2, 5))
    loop = folded(Loop(), (torch.rand(1, 200, 4), torch.rand(1, 8), torch.rand(1, 8)))
    assert loop == [("", 200)]
    assert folded(Chain("side by side"), (2, 5)) == []


# Geometry -----------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


def rectangles(svg: str) -> tuple[list[Any], list[Any], tuple[float, float]]:
    """Return (left, top, right, bottom) of boxes and of texts, with what they are, and the size."""
    boxes, texts = [], []

    def visit(element: Any, x: float, y: float) -> None:
        moved = re.match(r"translate\((\S+) (\S+)\)", element.get("transform", ""))
        if moved:
            x, y = x + float(moved[1]), y + float(moved[2])
        kind = (element.get("class") or "").removeprefix("tt-")
        if element.tag == f"{SVG}rect" and kind in ("input", "output", "weights", "layer", "operation", "head"):
            left, top = x + float(element.get("x")), y + float(element.get("y"))
            boxes.append((left, top, left + float(element.get("width")), top + float(element.get("height")), kind))
        if element.tag == f"{SVG}text":
            size = float(element.get("font-size", 12))
            text = "".join(element.itertext())
            width = 0.61 * size * len(text)
            left = x + float(element.get("x")) - (width / 2 if element.get("text-anchor") == "middle" else 0)
            base = y + float(element.get("y"))
            texts.append((left, base - 0.75 * size, left + width, base + 0.2 * size, text))
        for child in element:
            visit(child, x, y)

    root = ElementTree.fromstring(svg)
    visit(root, 0, 0)
    return boxes, texts, (float(root.get("width", 0)), float(root.get("height", 0)))


def overlap(a: Any, b: Any) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_nothing_overlaps(name: str, fold: bool) -> None:
    boxes, texts, (width, height) = rectangles(inspect.draw(*MODELS[name](), fold=fold).svg)
    # (The cards behind what repeats are where their box is.)
    leaves = [box for box in boxes if box[4] != "head"]
    around = [(a, b) for k, a in enumerate(leaves) for b in leaves[:k] if overlap(a, b)]
    assert all(a[4] == b[4] and abs(a[0] - b[0]) <= 6 and abs(a[1] - b[1]) <= 6 for a, b in around)
    for k, text in enumerate(texts):
        assert text[0] >= 0 and text[2] <= width and text[3] <= height, text
        assert not any(overlap(text, other) for other in texts[:k]), text
        inside = [box for box in boxes if overlap(text, box)]
        assert all(box[0] <= text[0] and text[2] <= box[2] for box in inside), text
        assert not (inside and text[4].startswith("[")), text


# The object, and what is left as it was --------------------------------------------------------------


def test_saving(tmp_path: Path) -> None:
    drawn = inspect.draw(*MODELS["mlp"]())
    drawn.save(tmp_path / "model.svg")
    drawn.save(tmp_path / "model.HTML")
    assert (tmp_path / "model.svg").read_text("utf-8") == drawn.svg + "\n"
    assert drawn.svg in (tmp_path / "model.HTML").read_text("utf-8") and drawn.svg in drawn._repr_html_()
    with pytest.raises(ValueError, match=r"saved as \.svg or \.html, not as '\.png'"):
        drawn.save(tmp_path / "model.png")
    assert repr(drawn) == "Drawing(Sequential, 6 boxes)"


def test_names_are_escaped() -> None:
    model = nn.Sequential()
    model.add_module('<b>&"\x07', nn.Linear(2, 2))
    drawn = inspect.draw(model, (1, 2))
    assert "<b>" not in drawn.svg and "&lt;b&gt;&amp;&quot;\ufffd" in drawn.svg
    ElementTree.fromstring(drawn.svg)


def test_the_model_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(), nn.ReLU(inplace=True))
    model[2].eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    torch.manual_seed(3)
    state = torch.get_rng_state()
    x = torch.rand(2, 1, 5, 5, requires_grad=True)
    after_x = torch.get_rng_state()
    inspect.draw(model, (2, 1, 5, 5))
    inspect.draw(model, x)
    assert torch.equal(torch.get_rng_state(), after_x) and not torch.equal(state, after_x)
    assert [each.training for each in model] == [True, True, False, True]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in model.modules())
    with pytest.raises(RuntimeError):
        inspect.draw(model, torch.rand(2, 5, 5, 5))
    assert [each.training for each in model] == [True, True, False, True]
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in model.modules())


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match=r"draw\(\): model should be a Module, but got int"):
        inspect.draw(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="depth should be None or a number from 0, but got -1"):
        inspect.draw(nn.Linear(1, 1), (1, 1), depth=-1)
    with pytest.raises(ValueError, match=r"draw\(\): a size cannot be negative"):
        inspect.draw(nn.Linear(1, 1), (1, -1))
    with pytest.raises(AttributeError, match="has no attribute 'drew'"):
        inspect.drew  # noqa: B018
    assert "draw" in dir(inspect)


def test_keywords() -> None:
    call = recorded(
        MODELS["towers"]()[0], {"text": torch.rand(4, 8)}, image=torch.rand(4, 3, 8, 8), mask=torch.rand(4, 1)
    )
    assert [box.name for box in call.page.boxes() if box.kind == "input"] == ["text", "image", "mask"]
