"""Make the reference: an entry for each public name, from its signature and docstring, and from docs/differences.md.

Functions of `torch` are divided among pages by the modules that declare them, other namespaces have a page each, and
so has each class. MkDocs's own tools read sources without running them; here most names are made by declarations, so
the entries are made from the objects.

    python -m scripts.website.reference        # list the names without an example
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import re
import textwrap
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tinytorch
from tinytorch.core.supplied import load

ROOT = Path(__file__).resolve().parents[2]

#: Pages of functions and constants of `torch`: title, and the modules that declare them (a prefix of their names).
TORCH = {
    "creating": ("Creating tensors", "ops.create ops.sequences ops.windows ops.memory legacy sparse.construct"),
    "random": ("Random numbers", "ops.random ops.rejection quasirandom"),
    "arithmetic": ("Elementwise functions", "ops.arithmetic ops.transcendental ops.operators ops.special ops.complex"),
    "comparing": ("Comparing, sorting, masks", "ops.compare ops.sort ops.masks"),
    "reductions": ("Reductions and statistics", "ops.reduce ops.statistics"),
    "shapes": ("Shapes, joining, indexing", "ops.shape ops.join ops.rearrange ops.copies ops.index ops.scatter"),
    "matrices": ("Products and matrices", "ops.linalg sparse.products ops.quantized ops.stft"),
    "networks": ("Functions of networks", "ops.nn nn.functional"),
    "other": ("Everything else", ""),
}

#: The other namespaces, with what they are for.
NAMESPACES = {
    "nn": "Layers, losses and containers.",
    "nn.functional": "Functions of layers and losses, without state.",
    "nn.init": "Initial values of parameters.",
    "nn.utils": "Clipping, parameters as a vector, normalization of weights.",
    "nn.utils.rnn": "Sequences of different lengths.",
    "nn.utils.parametrize": "Parameters that are computed from others.",
    "nn.utils.parametrizations": "Orthogonal, normalized and spectral weights.",
    "nn.utils.prune": "Pruning.",
    "optim": "Optimizers.",
    "optim.lr_scheduler": "Schedules of the learning rate.",
    "optim.swa_utils": "Averages of weights.",
    "autograd": "Gradients, your own functions, checks.",
    "autograd.functional": "Jacobians, Hessians and products with them.",
    "autograd.forward_ad": "Derivatives in forward mode.",
    "autograd.graph": "Nodes, hooks and saved tensors.",
    "autograd.profiler": "Time and memory of operations.",
    "func": "Functions of functions: `grad`, `vmap`, `jacrev`.",
    "utils.data": "Data sets, samplers and loaders.",
    "data": "The data sets that come with tinytorch.",
    "distributions": "Probability distributions.",
    "distributions.constraints": "The sets that parameters and samples are in.",
    "distributions.transforms": "Transformations of random variables.",
    "linalg": "Linear algebra.",
    "special": "Special functions.",
    "fft": "Fourier transforms.",
    "signal.windows": "Windows of signals.",
    "sparse": "Sparse tensors.",
    "amp": "Computing in 16 bits.",
    "compiler": "What goes with `torch.compile`.",
    "fx": "Programs as graphs.",
    "export": "Models as graphs.",
    "onnx": "Models as files for ONNX Runtime.",
    "jit": "Names of TorchScript.",
    "masked": "Reductions of a part of the elements.",
    "quasirandom": "Sobol sequences.",
    "random": "State of the random numbers.",
    "library": "Your own operators.",
    "overrides": "Classes that imitate tensors.",
    "distributed": "Several processes.",
    "multiprocessing": "Starting processes.",
    "futures": "Results of asynchronous calls.",
    "utils.checkpoint": "Recomputing instead of storing.",
    "utils.benchmark": "Measuring times.",
    "utils.tensorboard": "Files for TensorBoard.",
    "inspect": "What a model, a graph, a gradient or a training is made of.",
    "testing": "Comparing tensors.",
    "hub": "Models and weights from elsewhere.",
}

NAVIGATION = [
    "reference/Tensor.md",
    *(f"reference/torch/{page}.md" for page in TORCH),
    *(f"reference/{name}.md" for name in NAMESPACES),
]


@dataclass
class Entry:
    """A public name.

    Attributes:
        name: its path below `torch`, such as "nn.Linear" or "Tensor.view".
        value: what it names.
        page: the page with its entry.
        alias_of: the name with the description, if it is another name of that, or its in-place form.
        members: the public methods of a class.
    """

    name: str
    value: Any
    page: str
    alias_of: str = ""
    members: list[str] = field(default_factory=list)

    @property
    def docstring(self) -> str:
        """The docstring, without its indentation."""
        return docstring_of(self.value)

    @property
    def full(self) -> str:
        """The name as programs write it."""
        return f"torch.{self.name}"

    @property
    def has_example(self) -> bool:
        """Whether the docstring has an example, or examples.md."""
        return ">>>" in self.docstring or self.name in examples()

    @property
    def is_class(self) -> bool:
        """Whether it has a page of its own."""
        return isinstance(self.value, type) and not self.alias_of


def docstring_of(value: Any) -> str:
    """Return an object's own docstring, without its indentation."""
    text = getattr(value, "__doc__", None) if not isinstance(value, property) else value.__doc__
    if isinstance(value, (int, float, str, bool, tuple, list, dict, type(None))):
        return ""
    return inspect.cleandoc(text) if isinstance(text, str) else ""


@functools.cache
def examples() -> dict[str, str]:
    """Return the examples of examples.md, by name."""
    text = (Path(__file__).parent / "examples.md").read_text("utf-8")
    found = {}
    for part in text.split("\n## ")[1:]:
        names, _, example = part.partition("\n")
        found |= dict.fromkeys(names.split(), example.strip())
    return found


def module(name: str) -> Any:
    """Return a namespace of the package."""
    found: Any = tinytorch
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(f"{found.__name__}.{part}")
    return found


def public(namespace: Any) -> list[str]:
    """Return the public names of a namespace, but for modules."""
    names = getattr(namespace, "__all__", None) or dir(namespace)
    found = []
    for name in sorted(names):
        if not name.startswith("_") and not isinstance(getattr(namespace, name, None), types.ModuleType):
            found.append(name)
    return found


def family(home: str) -> str:
    """Return the page of `torch` for what a module declares."""
    for page, (_, prefixes) in TORCH.items():
        if any(home == prefix or home.startswith(f"{prefix}.") for prefix in prefixes.split()):
            return page
    return "other"


@functools.cache
def entries() -> dict[str, Entry]:
    """Return all public names."""
    found: dict[str, Entry] = {}
    homes = {name: path for path, names in tinytorch._NAMES.items() for name in names.split()}
    for name in public(tinytorch):
        if name != "Tensor":
            page = f"reference/torch/{family(homes.get(name, ''))}.md"
            found[name] = Entry(name, getattr(tinytorch, name), page)
    for namespace in NAMESPACES:
        here = module(namespace)
        for name in public(here):
            found[f"{namespace}.{name}"] = Entry(
                f"{namespace}.{name}", getattr(here, name), f"reference/{namespace}.md"
            )
    load(tinytorch.Tensor)
    for name in sorted(dir(tinytorch.Tensor)):
        if not name.startswith("_"):
            value = inspect.getattr_static(tinytorch.Tensor, name)
            found[f"Tensor.{name}"] = Entry(f"Tensor.{name}", value, "reference/Tensor.md")
    found["Tensor"] = Entry("Tensor", tinytorch.Tensor, "reference/Tensor.md")

    same: dict[Any, list[str]] = {}  # names of one thing: a class, or what has one docstring
    for name, entry in found.items():
        key = id(entry.value) if isinstance(entry.value, type) else entry.docstring
        if key and (callable(entry.value) or isinstance(entry.value, property)):
            same.setdefault(key, []).append(name)
    for name, *others in same.values():
        own = getattr(found[name].value, "__name__", "")
        main = next((each for each in (name, *others) if each.rpartition(".")[2] == own), name)
        for each in {name, *others} - {main}:
            found[each].alias_of = main
    for name, entry in found.items():
        plain = name.removesuffix("_")
        other = entry.docstring.split("`")[1] if entry.docstring.startswith("In-place version of `") else ""
        if entry.docstring.startswith("Deprecated name of `"):
            entry.alias_of = f"{name.rpartition('.')[0]}.{entry.docstring.split('`')[1]}"
        candidates = [plain] if plain != name else []
        candidates += [f"Tensor.{other}", other, plain.removeprefix("Tensor.")] if other else []
        if not entry.has_example and (candidates := [each for each in candidates if each in found]):
            entry.alias_of = found[candidates[0]].alias_of or candidates[0]
    for entry in found.values():
        while entry.alias_of and (further := found[entry.alias_of].alias_of):
            entry.alias_of = further
        if entry.is_class and entry.name != "Tensor":
            entry.page = f"reference/{entry.name}.md"
            own = vars(entry.value)
            entry.members = sorted(each for each in own if not each.startswith("_") and docstring_of(own[each]))
    return found


def without_example() -> list[str]:
    """Return the names of functions and classes whose entry has no example, and does not refer to one that has."""
    found = []
    for name, entry in entries().items():
        described = entries()[entry.alias_of] if entry.alias_of else entry
        value = inspect.unwrap(entry.value) if callable(entry.value) else entry.value
        if (callable(value) or isinstance(value, property)) and not described.has_example:
            found.append(name)
    return found


# What differs from PyTorch -------------------------------------------------------------------------

#: A sentence that names more than this is about a whole kind, 8-bit floats for example, and says little of each name.
MANY = 6


@functools.cache
def differences() -> dict[str, list[str]]:
    """Return the sentences of docs/differences.md that name something, by the names in them."""
    text = (ROOT / "docs" / "differences.md").read_text("utf-8").partition("\n## ")[2]
    found: dict[str, list[str]] = {}
    for item in re.split(r"\n(?=- |\n|#)", text):
        item = " ".join(item.removeprefix("- ").split())
        if item.startswith(("#", "|")):
            continue
        for sentence in re.split(r"(?<=\.) (?=[A-Z`])", item):
            spans = re.findall(r"`([^`]+)`", sentence)
            if len(spans) > MANY:
                continue
            for span in spans:
                name = re.sub(r"\(.*", "", span).removeprefix("torch.").removeprefix("x.")
                said = found.setdefault(name, [])
                if sentence not in said:
                    said.append(sentence)
    return found


def differing(name: str) -> list[str]:
    """Return what the page of differences says of a name."""
    short = name.rpartition(".")[2]
    known = differences()
    return known.get(name) or (known.get(short, []) if len(short) > 3 else [])


# Text ----------------------------------------------------------------------------------------------

SECTION = re.compile(r"^(Args|Returns|Raises|Example|Examples|Note|Source|Shape|Attributes|Yields):[ \t]*(.*)$")


def parsed_docstring(source: str) -> str:
    """Return the docstring of a module's source as Markdown."""
    import ast

    return markdown(ast.get_docstring(ast.parse(source)) or "", "", "")


def escaped(text: str) -> str:
    """Return a line of a docstring in which Markdown sees nothing but code between backticks."""
    parts = re.split(r"(`[^`\n]*`)", text)
    return "".join(part if i % 2 else re.sub(r"([*_<\[\]#|])", r"\\\1", part) for i, part in enumerate(parts))


def linked(text: str, context: str, page: str, own: frozenset[str] = frozenset()) -> str:
    """Let the public names between backticks lead to their entries.

    Args:
        text: Markdown.
        context: the namespace in which short names are looked up first.
        page: the page on which the text is.
        own: names that are not looked up: the arguments of a function.
    """
    known = entries()

    def link(match: re.Match[str]) -> str:
        said = match[1]
        name = said.removeprefix("torch.")
        if said in own:
            return match[0]
        for full in (f"{context}.{name}" if context else name, name, f"nn.{name}", f"Tensor.{name}"):
            if full in known and (full != name or len(name) > 2 or said != name):
                return f"[{match[0]}]({address(full, page)})"
        return match[0]

    return re.sub(r"(?<!\[)`([A-Za-z_][\w.]*)(?:\(\))?`(?!\])", link, text)


def address(name: str, page: str) -> str:
    """Return the relative address of an entry."""
    entry = entries()[name]
    target = entries()[entry.alias_of] if entry.alias_of else entry
    anchor = f"#{target.full}"
    return anchor if target.page == page else os.path.relpath(target.page, Path(page).parent) + anchor


def items(lines: list[str]) -> list[tuple[str, str]]:
    """Return the (names, description) of a section such as `Args`."""
    found: list[tuple[str, str]] = []
    for line in lines:
        match = re.match(r"(\S[^:`]*(?:`[^`]*`[^:`]*)*):(?: (.*)|$)", line)
        if match and not line.startswith(" "):
            found.append((match[1], match[2] or ""))
        elif found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}".strip())
        elif line.strip():
            found.append(("", line.strip()))
    return found


def blocks(lines: list[str]) -> str:
    """Return lines of a docstring as Markdown: paragraphs, examples, and indented lines as they are."""
    out: list[str] = []
    inside = ""
    for line in [*lines, ""]:
        kind = "pycon" if line.startswith((">>>", "...")) or (inside == "pycon" and line.strip()) else ""
        kind = kind or ("text" if line.startswith("    ") and (inside == "text" or not out or not out[-1]) else "")
        if inside and kind != inside:
            out += ["```", ""]
            inside = ""
        if kind and not inside:
            out += ["", f"```{kind}"]
            inside = kind
        out.append(line if inside else escaped(line))
    return "\n".join(out).strip()


def markdown(docstring: str, context: str, page: str, own: frozenset[str] = frozenset()) -> str:
    """Return a docstring in Google's style as Markdown."""
    title, body = "", []
    sections: list[tuple[str, list[str]]] = [("", body)]
    for line in docstring.splitlines():
        if match := SECTION.match(line):
            title, body = match[1], [match[2]] if match[2] else []
            sections.append((title, body))
            continue
        if title and line[:1].strip() and body and not body[-1].strip():  # a paragraph after the section
            title, body = "", []
            sections.append((title, body))
        body.append(line)
    out = []
    for title, lines in sections:
        lines = textwrap.dedent("\n".join(lines)).strip("\n").splitlines() if title else lines
        if title in ("Args", "Attributes", "Raises"):
            out.append({"Args": "**Arguments**", "Raises": "**Raises**"}.get(title, "**Attributes**"))
            rows = []
            for names, said in items(lines):
                code = ", ".join(f"`{each.strip('` ')}`" for each in names.split(", ")) if names else ""
                rows.append(f"- {code}{': ' if code else ''}{escaped(said)}")
            out.append("\n".join(rows))
        elif title in ("Example", "Examples", ""):
            out.append(blocks(lines))
        else:
            out.append(f"**{title}**\n\n{blocks(lines)}")
    text = "\n\n".join(each for each in out if each)
    if not page:
        return text
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if i % 2 else linked(part, context, page, own) for i, part in enumerate(parts))


def signature(value: Any) -> inspect.Signature | None:
    """Return the signature of what can be called, if it has one."""
    try:
        return inspect.signature(value)
    except (TypeError, ValueError):
        return None


def called(name: str, value: Any, method: bool = False) -> str:
    """Return how a function or class is called, in Python's syntax, on one line or one per argument.

    Args:
        name: what stands before the parenthesis.
        value: what is called.
        method: leave out the first parameter, if it is `self` or `cls`.
    """
    sign = signature(value)
    if sign is None:
        return name
    parts, keyword_only, positional = [], False, False
    for i, each in enumerate(sign.parameters.values()):
        if method and i == 0 and each.name in ("self", "cls", "mcs"):
            continue
        if positional and each.kind != each.POSITIONAL_ONLY:
            parts.append("/")
        positional = each.kind == each.POSITIONAL_ONLY
        if each.kind == each.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
        keyword_only = keyword_only or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        kind = each.annotation if isinstance(each.annotation, str) and each.annotation != "Any" else ""
        kind = kind.replace("builtins.", "")
        text = f"{stars}{each.name}{f': {kind}' if kind else ''}"
        if each.default is not each.empty:
            default = re.sub(r" at 0x[0-9a-f]+", "", repr(each.default))
            default = default if not default.startswith("<") else getattr(each.default, "__name__", "...")
            text += f" = {default}" if kind else f"={default}"
        parts.append(text)
    returns = sign.return_annotation
    arrow = (
        f" -> {returns.replace('builtins.', '')}" if isinstance(returns, str) and returns not in ("Any", "None") else ""
    )
    line = f"{name}({', '.join(parts)}){arrow}"
    if len(line) <= 88:
        return line
    rows, row = [], ""
    for part in parts:
        if row and len(row) + len(part) > 80:
            rows.append(row)
            row = ""
        row += f"{' ' if row else ''}{part},"
    return "\n".join([f"{name}(", *(f"    {each}" for each in [*rows, row]), f"){arrow}"])


def described(entry: Entry, page: str, level: int = 2) -> str:
    """Return the entry of a name."""
    context = entry.name.rpartition(".")[0]
    marks = "#" * level
    out = [f"{marks} {entry.full} {{ #{entry.full} }}"]
    if entry.alias_of:
        if entry.name.endswith("_") and not entry.alias_of.endswith("_"):
            out.append(linked(f"`{entry.alias_of}` in place.", "", page))
        else:
            out.append(f"Another name of [`torch.{entry.alias_of}`]({address(entry.alias_of, page)}).")
        return "\n\n".join(out)
    value = entry.value
    own: frozenset[str] = frozenset()
    if callable(value):
        sign = signature(value)
        own = frozenset(sign.parameters) if sign else own
        method = entry.name.startswith("Tensor.") and not isinstance(value, (staticmethod, classmethod))
        out.append(f"```python\n{called(entry.full, value, method)}\n```")
    text = entry.docstring
    out.append(markdown(text, context, page, own) if text else escaped(f"A constant: `{value!r}`."))
    if same := re.search(r"Arguments as `([\w.]+)`", text):  # repeated, so that a reader need not go there
        others = next((entries()[name] for name in (same[1], f"{context}.{same[1]}") if name in entries()), None)
        arguments = re.search(r"^Args:\n(?:(?: .*)?\n)+", others.docstring + "\n", re.MULTILINE) if others else None
        out += [markdown(arguments[0], context, page, own)] if arguments else []
    if entry.name in examples() and ">>>" not in text:
        out.append(examples()[entry.name])
    said = differing(entry.name)
    if said:
        up = "../" * page.count("/")
        said = [re.sub(r"\]\((?=[\w-]+\.md)", f"]({up}", each) for each in said]
        notes = "\n\n".join(f"    {linked(each, context, page, own)}" for each in said)
        out.append(f'!!! note "Differs from PyTorch"\n\n{notes}')
    return "\n\n".join(out)


def class_page(entry: Entry) -> str:
    """Return the page of a class."""
    page = entry.page
    namespace, _, short = entry.name.rpartition(".")
    home = home_of(entry)
    up = "../" * page.count("/")
    out = [
        # A search for a word also finds the longer names that begin with it: the shortest comes first.
        f"---\ntitle: {entry.full}\nsearch:\n  boost: {1 + 16 / len(short):.2f}\n---\n",
        f"[Reference]({up}reference/index.md) › [`torch{'.' * bool(namespace)}{namespace}`]({up}{home})",
        described(entry, page, 1),
    ]
    bases = [each for each in entry.value.__mro__[1:-1] if each.__module__.startswith("tinytorch")]
    names = {id(each.value): each.name for each in entries().values() if each.is_class}
    shown = [f"[`torch.{names[id(each)]}`]({address(names[id(each)], page)})" for each in bases if id(each) in names]
    if shown:
        out.append(f"Derived from {', '.join(shown)}.")
    for name in entry.members:
        out.append(member(entry, name, page))
    return "\n\n".join(out) + "\n"


def member(entry: Entry, name: str, page: str) -> str:
    """Return the part of a class's page about one of its methods or properties."""
    value = inspect.getattr_static(entry.value, name)
    function = getattr(value, "__func__", value)
    parts = [f"## {name} {{ #{entry.full}.{name} }}"]
    own: frozenset[str] = frozenset()
    if callable(function) and not isinstance(function, type):
        text = called(name, function, method=True)
        sign = signature(function)
        own = frozenset(sign.parameters) if sign else own
        parts.append(f"```python\n{text}\n```")
    parts.append(markdown(docstring_of(value), entry.name, page, own))
    return "\n\n".join(parts)


def _family_of(entry: Entry) -> str:
    homes = {name: path for path, names in tinytorch._NAMES.items() for name in names.split()}
    return family(homes.get(entry.name, ""))


def home_of(entry: Entry) -> str:
    """Return the page of an entry, or for a class the page of its namespace, which lists it."""
    if not entry.is_class or entry.name == "Tensor":
        return entry.page
    namespace = entry.name.rpartition(".")[0]
    return f"reference/{namespace}.md" if namespace else f"reference/torch/{_family_of(entry)}.md"


@functools.cache
def shelves() -> dict[str, list[str]]:
    """Return the pages of classes, in their order, by the page that lists them."""
    found: dict[str, list[str]] = {}
    for entry in entries().values():
        if entry.is_class and home_of(entry) != entry.page and entry.page not in found.get(home_of(entry), ()):
            found.setdefault(home_of(entry), []).append(entry.page)
    return found


def first_sentence(entry: Entry, page: str) -> str:
    """Return what a table says of a name."""
    if entry.alias_of:
        return f"another name of [`torch.{entry.alias_of}`]({address(entry.alias_of, page)})"
    text = " ".join(entry.docstring.partition("\n\n")[0].split())
    sentence = re.split(r"(?<=[.:]) (?=[A-Z])", text)[0]
    return linked(escaped(sentence), entry.name.rpartition(".")[0], page)


def page_of(title: str, page: str, about: str, mine: list[Entry]) -> str:
    """Return a page with the functions of a namespace, and a table of its classes."""
    out = ["---\nsearch:\n  boost: 2\n---\n", f"# {title}", *([about] if about else [])]
    classes = [entry for entry in mine if entry.is_class]
    aliases = [entry for entry in mine if entry.alias_of]
    constants = [entry for entry in mine if not callable(entry.value) and not isinstance(entry.value, property)]
    constants = [entry for entry in constants if "Tensor." not in entry.name]
    rest = [entry for entry in mine if entry not in classes and entry not in aliases and entry not in constants]
    if classes:
        rows = [f"| [`{each.full}`]({address(each.name, page)}) | {first_sentence(each, page)} |" for each in classes]
        out.append("\n".join(["| class | |", "|---|---|", *rows]))
    out += [described(entry, page) for entry in rest]
    if aliases:
        rows = [
            f'| <span id="{each.full}">`{each.full}`</span> | [`torch.{each.alias_of}`]({address(each.alias_of, page)})'
            f"{' in place' if each.name.endswith('_') and not each.alias_of.endswith('_') else ''} |"
            for each in aliases
        ]
        out.append("\n".join(["## Other names", "", "| name | is |", "|---|---|", *rows]))
    if constants:
        rows = [f'| <span id="{each.full}">`{each.full}`</span> | `{each.value!r}` |' for each in constants]
        out.append("\n".join(["## Constants", "", "| name | value |", "|---|---|", *rows]))
    return "\n\n".join(out) + "\n"


def listed(family: str) -> str:
    """Return links to the names of a page of `torch`, without names of the same thing and those in place."""
    page = f"reference/torch/{family}.md"
    mine = [each for each in entries().values() if "." not in each.name and not each.alias_of]
    mine = [each for each in mine if callable(each.value) and each.name != "Tensor"]
    mine = [each for each in mine if (f"reference/torch/{_family_of(each)}.md" if each.is_class else each.page) == page]
    return ", ".join(f"[{escaped(each.name)}]({address(each.name, 'reference/index.md')})" for each in mine)


def index_page() -> str:
    """Return the page that lists the parts of the reference."""
    number = sum(not entry.alias_of for entry in entries().values())
    out = [
        "# Reference",
        f"Every public name: {len(entries()):,}, of which {len(entries()) - number:,} are other names of the same "
        "thing. An entry has the arguments, what is returned, the errors, and an example. They are PyTorch's; where "
        "something differs, the entry says how. Press <kbd>/</kbd> to search.",
        "## torch",
        "\n".join(
            [
                "- [`torch.Tensor`](Tensor.md): methods and attributes of tensors",
                *(f"- [{title}](torch/{page}.md): {listed(page)}" for page, (title, _) in TORCH.items()),
            ]
        ),
        "## Other namespaces",
        "\n".join(f"- [`torch.{name}`]({name}.md): {about}" for name, about in NAMESPACES.items()),
    ]
    return "\n\n".join(out) + "\n"


def written() -> dict[str, str]:
    """Return all pages of the reference."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated names warn when they are looked up
        every = entries()
        pages = {"reference/index.md": index_page()}
        by_page: dict[str, list[Entry]] = {}
        for entry in every.values():
            if entry.is_class and entry.name != "Tensor":
                pages[entry.page] = class_page(entry)
            if entry.name != "Tensor":
                by_page.setdefault(home_of(entry), []).append(entry)
        for name, (title, _) in TORCH.items():
            page = f"reference/torch/{name}.md"
            pages[page] = page_of(title, page, "", by_page.get(page, []))
        for name, about in NAMESPACES.items():
            page = f"reference/{name}.md"
            pages[page] = page_of(f"torch.{name}", page, about, by_page.get(page, []))
        page = "reference/Tensor.md"
        about = markdown(docstring_of(tinytorch.Tensor), "Tensor", page)
        pages[page] = page_of("torch.Tensor { #torch.Tensor }", page, about, by_page[page])
    return pages


def names() -> Iterator[str]:
    """Yield all public names."""
    yield from entries()


if __name__ == "__main__":
    print("\n".join(without_example()))
