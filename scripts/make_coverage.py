#!/usr/bin/env python
"""Write the last part of `docs/coverage.md`: the public names of PyTorch that are implemented, missing, or left out.

python scripts/make_coverage.py            # write it, and the count in README.md; needs PyTorch
python scripts/make_coverage.py --check    # fail if it is not up to date

Counted are the callables in `dir()` of PyTorch's modules whose names do not start with an underscore. A name is
*implemented* if it exists in tinytorch and does more than raise NotImplementedError. Otherwise it is *left out* if it
belongs to one of `FAMILIES`, and *missing* if not.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.page import put  # noqa: E402
from tinytorch.compat.names import Refused, is_refusing  # noqa: E402

PAGE, README = ROOT / "docs" / "coverage.md", ROOT / "README.md"
LEFT_OUT = ROOT / "tinytorch" / "ops" / "left_out.py"
#: The phrase in README.md that contains the count (of `MAIN`).
COUNT = "has {have:,} of the {all:,} public names"

INTRODUCTION = """
Counted are the callables in `dir()` of each module of PyTorch 2.13 whose names do not start with an underscore. Only
the families of names below are left out. Every other name that does not exist in tinytorch, or only raises
NotImplementedError, counts as missing. Implemented functions may refuse some options, which their docstrings list.
[make_coverage.py](../scripts/make_coverage.py) writes this part.
"""

MAIN = ["torch", "torch.Tensor", "torch.linalg", "torch.special"]
FURTHER = [
    "torch.nn", "torch.nn.functional", "torch.optim", "torch.optim.lr_scheduler", "torch.utils.data",
    "torch.distributions", "torch.autograd", "torch.func",
]  # fmt: skip


@dataclass
class Family:
    """Names that are left out together: regular expressions, with the prefix `section:` if they hold for one only."""

    title: str
    reason: str
    names: str

    def __post_init__(self) -> None:
        self.patterns: list[tuple[str, re.Pattern[str]]] = []
        for word in self.names.split():
            section, _, pattern = word.rpartition(":")
            self.patterns.append((section, re.compile(pattern)))

    def has(self, section: str, name: str) -> bool:
        """Return whether a name belongs to the family."""
        return any(where in ("", section) and pattern.fullmatch(name) for where, pattern in self.patterns)


FAMILIES = [
    Family("Complex numbers of 16 bits", "NumPy has no complex numbers of 16 bits.", "chalf"),
    Family(
        "Quantized tensors",
        "there are no quantized dtypes, and no operators of quantized networks.",
        "quantize.* q_.* Q.*Storage fake_quantize.* fused_moving_avg.* fbgemm.* choose_qparams.* dequantize int_repr "
        "qscheme empty_quantized",
    ),
    Family("Nested tensors", "all tensors are rectangular.", "to_padded_tensor"),
    Family(
        "Several devices at once",
        "there is one device.",
        "RRefType prepare_multiprocessing_environment thread_safe_generator",
    ),
    Family(
        "TorchScript, the compiler and its control flow",
        "Python runs the programs: torch.jit.script returns its argument, and torch.compile generates NumPy programs.",
        "Script.* torch:.*Type(?<!ObjType) AliasDb AggregationType Argument ArgumentSpec Block CallStack Capsule Code "
        "CompilationUnit CompleteArgumentSpec ConcreteModuleTypeBuilder DeepCopyMemoTable ErrorReport ExecutionPlan "
        "FileCheck FunctionSchema Gradient Graph GraphExecutorState IODescriptor JITException LiteScriptModule "
        "Node OperatorInfo PyTorchFile(Reader|Writer) Deserialization.* Serialization.* StaticModule TracingState Type "
        "Use Value import_ir_module.* parse_(ir|schema|type_comment) merge_type_from_type_comment unify_type_list "
        "get_file_path fork wait torch.autograd:NestedIOFunction",
    ),
    Family(
        "Other devices and their kernels",
        "everything runs on the CPU.",
        "(cudnn|miopen|mkldnn|vulkan|mps|xpu)_.* is_vulkan_available .*cuda12 to_mkldnn ipu xpu mtia "
        "record_stream StreamObjType DeviceObjType AcceleratorError "
        "torch.nn.functional:(scaled|grouped|scaled_grouped)_mm "
        "ScalingType SwizzleType",
    ),
    Family("Symbolic shapes", "they belong to the compiler.", "Sym.* sym_.*"),
    Family("Internal state of autocast", "undocumented functions below `torch.autocast`.", "(get|set|is)_autocast_.*"),
    Family(
        "The dispatcher and other internals",
        "undocumented (except `Tag`); tinytorch has other internals.",
        "DispatchKey(Set)? ExcludeDispatchKeyGuard DisableTorchFunction.* Tag BenchmarkConfig BenchmarkExecutionStats "
        "ThroughputBenchmark (Locking|Noop)?Logger(Base)? BufferDict torch:ModuleDict torch:ParameterDict FatalError "
        "classproperty init_num_threads "
        "torch.autograd:(Profiler.*|kineto_available|SavedTensor|enforce_grad_layout_policy|is_.*_enabled) "
        "torch.nn:factory_kwargs torch.nn.functional:(assert_int_or_pair|boolean_dispatch) "
        "torch.optim:swap_in_optimizer_params_and_state "
        "torch.utils.data:(argument_validation|functional_datapipe|.*_datapipes_.*|non_deterministic|runtime_.*)",
    ),
    Family(
        "Kernels below the public functions",
        "undocumented parts and variants of public functions.",
        "native_.* batch_norm_(stats|elemt|backward.*|gather_stats.*|update_stats) "
        ".*_copy(?<!narrow_copy)(?<!index_copy)",
    ),
    Family(
        "Removed from PyTorch",
        "the name exists and raises an error that names the replacement.",
        "torch:(eig|lstsq|solve|symeig|matrix_rank) torch.Tensor:(eig|lstsq|solve|symeig|reinforce)",
    ),
    Family("DataPipes", "deprecated in PyTorch in favour of data sets and loaders.", ".*DataPipe DataChunk"),
]


@dataclass
class Section:
    """The names of one module of PyTorch."""

    name: str
    have: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)  # by family

    @property
    def counted(self) -> int:
        """The number of names that are not left out."""
        return len(self.have) + len(self.missing)


def resolve(library: str, name: str) -> Any:
    """Return a module such as `torch.nn.functional`, or Tensor, of "torch" or "tinytorch"; None if it is missing."""
    if name == "torch.Tensor":
        return importlib.import_module(library).Tensor
    path = name.replace("torch", library, 1)
    parent = importlib.util.find_spec(path.rpartition(".")[0] or path)
    if parent is None or importlib.util.find_spec(path) is None:
        return None
    return importlib.import_module(path)


def public(section: str, module: Any) -> list[str]:
    """Return the public callables of a module (or of Tensor), without those that the module imports for its own use."""
    names = []
    for name in dir(module):
        value = getattr(module, name)
        if name.startswith("_") or not callable(value):
            continue
        home = getattr(value, "__module__", None) or section
        foreign = home.partition(".")[0] not in ("torch", section)
        # A class or function of another module that is not listed in `__all__`.
        imported = (
            section not in (*MAIN[:2], "torch.nn.functional") and name not in getattr(module, "__all__", [name])
        ) or (section not in MAIN[:2] and name in IMPORTED)
        if foreign or imported or (section != "torch" and value is torch_of("Tensor")):
            continue
        names.append(name)
    return names


#: Helpers that PyTorch's modules import for their own use.
IMPORTED = {
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
    "DType", "is_tensor_like", "DeviceType",
}  # fmt: skip


def torch_of(name: str) -> Any:
    """Return `torch.<name>` of PyTorch."""
    return getattr(importlib.import_module("torch"), name)


def refuses(value: Any, error: str = "NotImplementedError") -> bool:
    """Return whether a function (or the constructor of a class) only raises an error of this class."""
    if is_refusing(value):
        return error in inspect.getclosurevars(value).nonlocals["error"].__name__
    if isinstance(value, type):
        return issubclass(value, Refused) or any(
            refuses(value.__dict__.get(name), error) for name in ("__init__", "__new__")
        )
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    except (OSError, TypeError, SyntaxError):
        return False
    if not isinstance(tree, ast.FunctionDef) or not isinstance(tree.body[-1], ast.Raise):
        return False
    returns = any(isinstance(node, (ast.Return, ast.Yield)) for node in ast.walk(tree))
    return not returns and error in ast.unparse(tree.body[-1])


def survey() -> dict[str, Section]:
    """Return all sections."""
    sections = {}
    for path in [*MAIN, *FURTHER]:
        theirs, ours = resolve("torch", path), resolve("tinytorch", path)
        section = sections[path] = Section(path)
        for name in public(path, theirs):
            function = getattr(ours, name, None)
            family = next((f for f in FAMILIES if f.has(path, name)), None)
            # A function may raise another error than NotImplementedError always, as PyTorch's does for a dense tensor
            # on a CPU, and is implemented then. In a family that is left out, a function that only raises is not.
            if callable(function) and not refuses(function, "NotImplementedError" if family is None else ""):
                section.have.append(name)
            elif family is None:
                section.missing.append(name)
            else:
                section.left_out.setdefault(family.title, []).append(name)
    return sections


def paragraph(names: list[str]) -> str:
    """Return names as a paragraph."""
    return textwrap.fill(", ".join(f"`{name}`" for name in names), 118, break_long_words=False, break_on_hyphens=False)


def part(sections: dict[str, Section]) -> str:
    """Return the part of docs/coverage.md."""
    lines = [
        "## The names of PyTorch's API",
        "",
        *textwrap.wrap(INTRODUCTION.strip(), 118),
        "",
        "| module | implemented | missing | left out | implemented / (all - left out) |",
        "|---|---|---|---|---|",
    ]

    def row(title: str, group: list[Section]) -> str:
        have, counted = sum(len(s.have) for s in group), sum(s.counted for s in group)
        out = sum(len(names) for s in group for names in s.left_out.values())
        share = f"{have / counted:.1%}" if counted else "-"
        return f"| {title} | {have:,} | {counted - have:,} | {out:,} | {share} |"

    for name in MAIN:
        lines.append(row(f"`{name}`", [sections[name]]))
    lines.append(row("**these four**", [sections[name] for name in MAIN]))
    for name in FURTHER:
        lines.append(row(f"`{name}`", [sections[name]]))
    lines += ["", "### Left out, and why", ""]
    for family in FAMILIES:
        parts = {n: s.left_out[family.title] for n, s in sections.items() if family.title in s.left_out}
        if not parts:
            continue
        lines += [f"#### {family.title}", "", family.reason[0].upper() + family.reason[1:], ""]
        for name, names in parts.items():
            lines += [f"In `{name}`:", paragraph(names), ""]
    lines += ["### Missing", ""]
    for name, section in sections.items():
        if section.missing:
            lines += [f"#### {name}: {len(section.missing)}", "", paragraph(section.missing), ""]
    lines += ["### Implemented", ""]
    for name, section in sections.items():
        if section.have:
            lines += [f"#### {name}: {len(section.have)}", "", paragraph(section.have), ""]
    return "\n".join(lines).rstrip()


def table(sections: dict[str, Section]) -> str:
    """Return the text of `tinytorch/ops/left_out.py`, with the names that the package does not have."""
    reasons = {family.title: family.reason.rstrip(".") for family in FAMILIES if family.title != "Removed from PyTorch"}
    reasons[""] = ""
    lines = ["NAMES: dict[str, dict[str, str]] = {"]
    for path, section in sections.items():
        ours, groups = resolve("tinytorch", path), {**section.left_out, "": section.missing}
        absent = {title: [name for name in names if not hasattr(ours, name)] for title, names in groups.items()}
        if any(absent.values()):
            lines.append(f'    "{path}": {{')
            for title, names in absent.items():
                if names and title in reasons:
                    lines.append(f'        "{reasons[title]}": """')
                    lines += textwrap.wrap(" ".join(names), 108, initial_indent=" " * 12, subsequent_indent=" " * 12)
                    lines.append('        """,')
            lines.append("    },")
    text = LEFT_OUT.read_text("utf-8")
    return text[: text.index("NAMES: dict")] + "\n".join([*lines, "}"]) + "\n"


def count(sections: dict[str, Section]) -> str:
    """Return the phrase of README.md with the count."""
    main = [sections[name] for name in MAIN]
    return COUNT.format(have=sum(len(s.have) for s in main), all=sum(s.counted for s in main))


def stale() -> list[str]:
    """Return the files that are not up to date."""
    sections = survey()
    files = []
    text = PAGE.read_text("utf-8")
    if put(text, "names", part(sections)) != text:
        files.append("docs/coverage.md")
    if LEFT_OUT.read_text("utf-8") != table(sections):
        files.append("tinytorch/ops/left_out.py")
    if count(sections) not in README.read_text("utf-8"):
        files.append("README.md")
    return files


def main(arguments: list[str], say: Callable[[str], Any] = print) -> int:
    """Write or check the part; return the exit status."""
    if "--check" in arguments:
        files = stale()
        if files:
            say(f"run scripts/make_coverage.py: {' and '.join(files)} not up to date")
        return int(bool(files))
    sections = survey()
    PAGE.write_text(put(PAGE.read_text("utf-8"), "names", part(sections)), "utf-8")
    LEFT_OUT.write_text(table(sections), "utf-8")
    pattern = re.escape(COUNT).replace(r"\{have:,\}", r"[\d,]+").replace(r"\{all:,\}", r"[\d,]+")
    README.write_text(re.sub(pattern, count(sections), README.read_text("utf-8")), "utf-8")
    for line in part(sections).splitlines():
        if line.startswith("|"):
            say(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
