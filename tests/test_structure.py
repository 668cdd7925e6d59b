"""The rules of the structure: order of imports, no circles, a fact stands once, nothing is patched."""

from __future__ import annotations

import ast
import functools
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import tinytorch
from tests import declared
from tests.declared import registered
from tests.oracle import package
from tinytorch.compiler.saved import home_of
from tinytorch.core import device, facts
from tinytorch.core.mode import Event
from tinytorch.core.supplied import HOMES
from tinytorch.fx._aten import rules_of
from tinytorch.fx.export.tracing import followed
from tinytorch.fx.onnx.builder import entry
from tinytorch.kernels import dtypes
from tinytorch.ops import bits  # noqa: F401  (its ops are in the table, too)
from tinytorch.ops.register import functions

PACKAGE = Path(tinytorch.__file__).parent

#: The folders, and modules beside them, in order: each imports only from itself and from those before it.
ORDER = """
    _version _atomic kernels core ops linalg special fft random sparse quasirandom signal autograd amp nn masked func
    optim data serialization inspect distributions testing overrides library multiprocessing distributed compiler utils
    fx compat __main__
""".split()


@functools.cache
def modules() -> list[tuple[str, Path]]:
    """Return (dotted name below tinytorch, file) of all modules."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


def place(name: str) -> int:
    """Return the place of a module in the order; the package itself, which is lazy, comes last.

    So do the submodules that compat finds, such as `tinytorch.cuda`.
    """
    folder = name.split(".")[0]
    return ORDER.index(folder if folder in ORDER else "compat")


@functools.cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text("utf-8"))


def last_name(node: ast.AST) -> str:
    """Return the name, or the last part of the dotted name, that an expression is."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


class Import(NamedTuple):
    """A dotted name below tinytorch that a file imports, in a function or at the top, by a statement or a call."""

    name: str
    at_the_top: bool
    by_a_statement: bool


@functools.cache
def imports(path: Path) -> list[Import]:
    """Return what a file imports (outside `if TYPE_CHECKING`)."""
    known = {name for name, _ in modules()}
    calls = "import_module" in path.read_text("utf-8")
    inside = (ast.AST,) if calls else (ast.stmt, ast.ExceptHandler, ast.match_case)  # expressions only where need be
    found = []
    nodes: list[tuple[ast.AST, bool]] = [(parsed(path), True)]
    while nodes:
        node, top = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        top = top and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] == "tinytorch"):
            above = path.relative_to(PACKAGE).parts[: -node.level] if node.level else ()
            base = ".".join([*above, (node.module or "").removeprefix("tinytorch").removeprefix(".")]).strip(".")
            for alias in node.names:
                full = f"{base}.{alias.name}".removeprefix(".")
                found.append(Import(full if full in known else base, top, True))
        if isinstance(node, ast.Call) and last_name(node.func) == "import_module":
            named = [str(each.value) for each in ast.walk(node) if isinstance(each, ast.Constant)]
            below = [each.removeprefix("tinytorch.") for each in named if each.startswith("tinytorch.")]
            found += [Import(each, top, False) for each in below if each]
        if isinstance(node, ast.Import):
            named = [each.name for each in node.names if each.name.startswith("tinytorch")]
            found += [Import(each.removeprefix("tinytorch").removeprefix("."), top, True) for each in named]
        nodes += [(each, top) for each in ast.iter_child_nodes(node) if isinstance(each, inside)]
    return found


def test_names_of_nn_that_distributed_defines_are_imported_when_asked_for() -> None:
    """The one exception to the order is a table: public names of `nn` that are defined in `distributed`."""
    table = importlib.import_module("tinytorch.nn._distributed").DEFINED_IN
    for name, module in table.items():
        assert place(module.removeprefix("tinytorch.")) == ORDER.index("distributed")
        home = tinytorch.nn if hasattr(tinytorch.nn, name) else tinytorch.nn.parallel
        assert name in dir(home) and getattr(home, name) is getattr(sys.modules[module], name, sys.modules[module])
    program = "import sys, tinytorch.nn.parallel; print('tinytorch.distributed' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


def test_imports_follow_the_order() -> None:
    late = [
        f"{name or 'tinytorch'} imports {each.name}"
        for name, path in modules()
        for each in imports(path)
        if place(each.name) > place(name)
    ]
    assert not late


def test_every_entry_of_the_root_has_its_place() -> None:
    entries = {name.split(".")[0] for name, _ in modules()} - {""}
    assert entries == {name.split(".")[0] for name in ORDER}
    assert len({path.name for path in PACKAGE.iterdir()} - {"__pycache__"}) <= 35


def test_the_package_is_imported_at_the_top_only() -> None:
    hidden = {}
    for name, path in modules():
        statements = [each for each in imports(path) if each.by_a_statement]
        hidden[name] = {each.name for each in statements} - {each.name for each in statements if each.at_the_top}
    assert not any(hidden.values()), {name: found for name, found in hidden.items() if found}


RECORDER = """
import builtins, importlib, json, pkgutil, sys
edges, plain = set(), builtins.__import__
def record(importer, name):
    parts = name.split(".")
    if parts[0] == "tinytorch" and importer.split(".")[0] == "tinytorch" and len(parts) > 1:
        edges.add((importer, name))
def imported(name, globals=None, locals=None, fromlist=(), level=0):
    importer = (globals or {}).get("__name__", "")
    if not level:
        record(importer, name)
        for each in fromlist or ():
            if f"{name}.{each}" in sys.modules or name == "tinytorch":
                record(importer, f"{name}.{each}")
    return plain(name, globals, locals, fromlist, level)
builtins.__import__ = imported
import tinytorch
for each in pkgutil.walk_packages([*tinytorch.__path__, tinytorch.compat.FOLDER], "tinytorch."):
    importlib.import_module(each.name)
print(json.dumps(sorted(edges)))
"""


def test_imports_follow_the_order_as_they_run() -> None:
    run = subprocess.run([sys.executable, "-c", RECORDER], capture_output=True, text=True, check=True)
    edges = [(a.partition(".")[2], b.partition(".")[2]) for a, b in json.loads(run.stdout)]
    assert len(edges) > 1000

    wrong = [(a, b) for a, b in edges if place(b) > place(a)]
    assert not wrong


def test_tensor_is_complete_from_the_beginning() -> None:
    program = """
import pkgutil, importlib, tinytorch
before = set(vars(tinytorch.Tensor))
for each in pkgutil.walk_packages([*tinytorch.__path__, tinytorch.compat.FOLDER], "tinytorch."):
    importlib.import_module(each.name)
print(*sorted(set(vars(tinytorch.Tensor)) - before))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not run.stdout.split()


def test_kernels_know_no_tensor() -> None:
    for name, path in modules():
        if name.startswith("kernels"):
            assert not any("core.tensor" in each.name for each in imports(path)), name


#: What most programs do not need, or ask for by an import of their own.
LATER = """
    amp autograd.forward_ad autograd.function autograd.gradcheck autograd.profiler compiler cuda data distributions fft
    func jit linalg nn optim serialization testing utils
"""


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, tinytorch; print(*sorted(sys.modules))"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    never = "torch tqdm urllib.request zipfile PIL multiprocessing torchvision matplotlib".split()
    assert not {*never, *(f"tinytorch.{name}" for name in LATER.split())}.intersection(names)


def test_public_names_are_sorted_and_there() -> None:
    assert tinytorch.__all__ == sorted(tinytorch.__all__)
    for name in tinytorch.__all__:
        assert hasattr(tinytorch, name), name


@pytest.mark.parametrize("script", ["make_names.py", "make_stub.py"])
def test_generated_files_are_fresh(script: str) -> None:
    run = subprocess.run([sys.executable, ROOT / "scripts" / script, "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


# The tree ------------------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parent.parent

#: Paths that every system like Unix has, or the one that a message or an example is about.
ABSOLUTE = re.compile(r"/(usr/bin/env|dev/(null|full|stdout|fd)|proc/|sys/fs/cgroup|home/me/|usr/share/keyrings/)")


def test_no_folder_has_more_lines_than_it_may() -> None:
    ran = subprocess.run([sys.executable, str(ROOT / "scripts" / "count_lines")], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_no_file_names_a_path_of_one_machine() -> None:
    places = "tmp|home|root|work|opt|usr|var|mnt|srv|etc|Users|dev|proc|sys|private|scratch"
    path = re.compile(rf"(?<![\w.:/<*)}}~$-])/(?:{places})/\w[\w./-]*")
    found = []
    for file in files_of_the_tree():
        text = file.read_text("utf-8", errors="ignore")
        named = [each for each in path.findall(text) if not ABSOLUTE.match(each)]
        found += [f"{file.relative_to(ROOT)}: {each}" for each in named]
    assert not found


def files_of_the_tree() -> list[Path]:
    """Return the text files of the repository; outside of one, those of the folders that an archive of it has."""
    run = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    names = run.stdout.splitlines() if (ROOT / ".git").exists() else []
    files = [ROOT / name for name in names] or [
        path for folder in ("tests", "examples", "benchmarks", "docs", "scripts") for path in (ROOT / folder).rglob("*")
    ]
    return [
        path for path in files if path.suffix in (".py", ".md", ".sh", ".toml", ".yml", ".txt", "") and path.is_file()
    ]


# A fact stands once -------------------------------------------------------------------------------

#: Collections at the level of a module that may hold names of ops, with the reason.
MAY_LIST_OPS = {
    "__init__._NAMES": "generated: which module has which public name",
    "autograd.profiler._NAMES": "appearance: names of rows in PyTorch's profiler",
    "autograd.api": "declarations of members of Tensor",
    "autograd.profiler.COUNTED": "appearance: the products that PyTorch's profiler counts",
    "compiler.recorder.Recorder._wrote": "words of a sentence",
    "compiler.trace": "operators of Python",
    "compat": "names of PyTorch that programs ask for",
    "masked._IDENTITIES": "the number that changes no result of a function of `torch.masked`",
    "fx._codegen": "operators of Python",
    "fx._aten.COMPUTES": "operators of ATen that are no public functions, or have other arguments",
    "fx.experimental.proxy_tensor._Recorder.creation": "appearance: how PyTorch's graphs show what creates tensors",
    "fx.onnx.ops.index._scatter": "values of an argument",
    "fx.passes.cse_pass": "appearance: the operators that PyTorch's pass leaves",
    "fx.proxy.ParameterProxy": "members that are no ops",
    "fx._names._IN_GRAPHS": "appearance: the names that functions have in PyTorch's graphs",
    "inspect.doctor.trace._UPDATES": "what a step that a program takes itself may call",
    "inspect.doctor.patches": "where the results of ops are finite, which no declaration says",
    "inspect.doctor.checks": "what ops do to the values of data, which no declaration says",
    "inspect.finite": "which arguments make a result that is not finite, which no declaration says",
    "inspect.notebook._statistics": "words of a table",
    "inspect.why": "which calls in the source of a program may cut a gradient off",
    "kernels.indexing._REDUCTIONS": "values of an argument",
    "kernels.dtypes.dtype": "attributes of dtypes",
    "kernels.meta": "methods of arrays",
    "nn.functional.layers.embedding_bag": "values of an argument",
    "inspect.mistakes.trial._OF_NUMPY": "functions of NumPy",
    "inspect.mistakes.trial._ARRAYS": "methods of NumPy",
    "inspect.mistakes.trial._OF_PROCESS": "what is not to be run while a remedy is tried",
    "inspect.mistakes.failure._NAMES": "operators of Python",
    "inspect.mistakes.edits._FAMILY": "which functions do the same for other arguments",
    "inspect.mistakes.edits.Edits.edits": "which functions take sizes",
    "inspect.mistakes.rows.collated": "words of a message",
    "nn.init._LINEAR": "values of an argument",
    "nn.init._GAINS": "values of an argument",
    "nn.parameter._ALLOWED": "appearance: the members that PyTorch lets an uninitialized parameter have",
    "ops.nn.embedding._MODES": "values of an argument",
    "ops.bits.BitView": "the members of a class of tensors",
    "ops.copies.channel_shuffle": "a declaration",
    "ops.random.log_normal_": "names of arguments",
    "ops.random.normal_": "names of arguments",
    "ops.scatter": "values of an argument",
    "ops.shape.as_strided": "names of arguments",
    "ops.statistics.segment_reduce": "values of an argument",
    "sparse": "what sparse tensors do: the members of a class of tensors",
    "ops.operators._div_rounded": "values of an argument",
    "ops.out.RULES": "the rules that declarations name; a rule of one function has its name",
    "ops.overrides._BINARY": "operators of Python",
    "ops.overrides._ASKING": "appearance: private members that PyTorch's __torch_function__ is called for",
}


def words_of(node: ast.AST) -> set[str]:
    """Return the words in the strings of an expression that consist of names, as sentences do not."""
    strings = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    named = [text.replace(",", " ").split() for text in strings]
    return {word for words in named if all(each.replace(".", "").isidentifier() for each in words) for word in words}


def tables_of(path: Path, declares: bool) -> Iterator[tuple[str, set[str]]]:
    """Yield where a module lists words, at its level, in the body of a function or the arguments of a call, and which.

    Args:
        path: the file.
        declares: whether the module declares functions, so that only what it assigns may be a table.
    """
    nodes: list[tuple[ast.AST, str]] = [(each, "") for each in parsed(path).body]
    while nodes:
        node, where = nodes.pop()
        assigned = getattr(node, "target", None) or next(iter(getattr(node, "targets", ())), None)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            where = f"{where}.{node.name}"
        elif not where and isinstance(assigned, ast.Name):
            where = f".{assigned.id}"
        elif declares and not where:
            continue
        if where == ".__all__" or isinstance(node, (ast.Raise, ast.JoinedStr)):
            continue
        if isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Constant)):
            yield where, words_of(node)
        if isinstance(node, ast.Call):
            yield where, words_of(ast.Tuple([each for each in node.args if isinstance(each, ast.Constant)]))
        nodes += [(each, where) for each in ast.iter_child_nodes(node)]


def test_no_module_lists_ops_beside_their_declarations() -> None:
    assert declared.FUNCTIONS  # (all modules that declare ops are imported)
    names = {*functions, *HOMES, *[op.name for op in registered()]}
    kinds = [each.tensor_name.lower() for each in vars(dtypes).values() if isinstance(each, dtypes.dtype)]
    others = {*kinds, *dtypes.C_NAMES, *device._KINDS, "half", "bfloat16"}
    ops = {each for name in names for each in (name, name.rpartition(".")[2]) if not each.startswith("__")} - others
    found: dict[str, set[str]] = {}
    for module, path in modules():
        for where, words in tables_of(path, module.partition(".")[0] in ("ops", "sparse")):
            listed = words & ops
            if len(listed) >= 3 and 2 * len(listed) >= len(words):
                found.setdefault(f"{module or '__init__'}{where}", set()).update(listed)
    excepted = tuple(MAY_LIST_OPS)
    wrong = {name: listed for name, listed in found.items() if not name.startswith(excepted)}
    assert not wrong, "say these facts in the declarations of the ops, or add them there by `extend`"
    stale = [name for name in excepted if not any(each.startswith(name) for each in found)]
    assert not stale, "take these out of MAY_LIST_OPS"


#: By field of the declarations, what has none, and why. (A kernel without a field runs as it is.)
GAPS: dict[str, dict[str, str]] = {
    "aten": {
        "PyTorch's operators compute gradients of whole functions, and have other arguments": """
            _attention_grad _batch_first _batch_norm_grad _column_sums _conv_weight _ctc_grad _ctc_slope
            _diagonal_matrix _dirichlet_grad _elu_grad _embedding_factors _embedding_grad _filled_sum
            _gelu_grad _group_norm_grad _gru_grad _hardswish_grad _identity _layer_norm_grad _lstm_grad
            _masked_source _max_values _met _mish_grad _multi_margin_terms _multilabel_margin_slope
            _nll_loss_grad _norm_unit _permutation_matrix _prelu_grad _prod_grad _put_back _replaced
            _restrided _rms_norm_grad _rnn_grad _rows_back _scaled_interior _scan _scattered _shares _shift
            _silu_grad _soft_targets _softplus_grad _standard_gamma_grad _sums_after _sums_before _sums_from _taken_back
            _unmasked
        """,
        "windows and images: rules of the public functions say which operators compute them, if there are any": """
            _AdaptiveAvgPool2D _AdaptiveAvgPool3D _AdaptiveMaxPool2D _AdaptiveMaxPool3D _AvgPool2D
            _AvgPool3D _CircularPad1D _CircularPad2D _CircularPad3D _FractionalMaxPool2D
            _FractionalMaxPool3D _GridSampler2D _GridSampler3D _GridSamplerBackward
            _MaxPool2DWithIndices _MaxPool3DWithIndices _MaxUnpool2D _MaxUnpool3D
            _ReflectionPad1D _ReflectionPad2D _ReflectionPad3D _ReplicationPad1D _ReplicationPad2D
            _ReplicationPad3D _UpsampleBicubic2D _UpsampleBicubic2DAa _UpsampleBilinear2D
            _UpsampleBilinear2DAa _UpsampleLanczos2DAa _UpsampleLinear1D _UpsampleNearest1D
            _UpsampleNearest2D _UpsampleNearest3D _UpsampleNearestExact1D _UpsampleNearestExact2D
            _UpsampleNearestExact3D _UpsampleTrilinear3D _channel_shuffle _fold _pixel_shuffle
            _pixel_unshuffle _unfold
        """,
        "layers, whose operators have other arguments or results": """
            _attention _by_batch _by_given _ctc_losses _gru_layer _lstm_layer _of_larger _one_hot _prelu
            _rnn_layer _transposed_convolution
        """,
        "decompositions and solutions of linear systems": """
            _block_diag _cdist _cholesky _cholesky_info _cholesky_inverse _cholesky_solve _cross _det _dist
            _eig _eigh _eigvals _eigvalsh _euclidean _exponential _geqrf _grouped_mm _householder _int_mm
            _inverse _ldl _ldl_solve _least_squares _lu _lu_parts _lu_solve _norm _only_r _pdist _pinv _qr _rank
            _slogdet _solve _solve_info _svd _svdvals _trace _triangular_solve _vdot
        """,
        "views that are bits of a tensor": "_conj _neg_view",
        "Fourier transforms": """
            _complex_to_complex _complex_to_real _complex_to_real_part _real_to_complex
        """,
        "what is drawn is recorded as the public function": """
            _bernoulli_each _binomial _dirichlet _gamma _multinomial _normal_each _poisson
        """,
        "sparse tensors": """
            _entries _multiply _sampled _scatter_multiply _second _without_data _zeros
        """,
        "no rule has been written: `make_fx` refuses these": """
            _amax _amin _aminmax _bincount _clamp_to_tensors _copy _diagonal_copy _embed_diagonal _extreme
            _fill _frexp _from_scaled _histc _histogram _index_add _index_copy _index_fill _index_put
            _is_all_true _is_any_true _isclose _kthvalue _logcumsumexp _masked_scatter _median_all
            _median_dim _mode _mvlgamma _nanmedian_all _nanmedian_dim _pieces _polygamma _product _put
            _rot90 _scatter_add _scatter_extreme _scatter_mean _scatter_prod _scatter_sum _strided _unique2
            _unique_dim _unique_runs
        """,
    },
    "onnx": {
        "ONNX has no operators that compute these": """
            angle digamma erfinv gcd gcd_ i0 i0_ igamma igammac isreal lcm lcm_ lgamma nextafter
            special.airy_ai special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1
            special.digamma special.entr special.erfcx special.erfinv special.gammainc special.gammaincc
            special.gammaln special.i0 special.i0e special.i1 special.i1e special.log_ndtr
            special.modified_bessel_i0 special.modified_bessel_i1 special.modified_bessel_k0
            special.modified_bessel_k1 special.ndtr special.ndtri special.psi
            special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1 special.spherical_bessel_j0
            special.xlog1py special.zeta
        """,
        "the shape of the result depends on values, or the result on bits": """
            hash_tensor masked_select
        """,
    },
    "loss": {"gradients": "_nll_loss_grad", "an example has several classes": "multilabel_margin_loss"},
    "multiply_adds": {"nothing is added": "outer"},
}


def gaps_of(field: str) -> set[str]:
    """Return the ops, or the public functions, that might have a field of the declarations and do not."""
    ops = registered()
    if field == "aten":
        return {op.name for op in ops if not rules_of(op)}
    if field == "loss":
        return {op.name for op in ops if "reduction" in op.arguments and op.loss is None}
    if field == "multiply_adds":
        return {op.name for op in ops if op.linear and op.multiply_adds is None}
    package("onnx")
    found = {name for name, f in declared.FUNCTIONS.items() if entry(f) is None and followed(f) is None}
    return {name for name in found if not name.startswith("_")}


@pytest.mark.parametrize("field", GAPS)
def test_what_has_no_fact_is_listed_with_the_reason(field: str) -> None:
    listed = " ".join(GAPS[field].values()).split()
    assert gaps_of(field) == set(listed) and len(listed) == len(set(listed))


def test_facts_have_declared_fields_and_are_given_once() -> None:
    with pytest.raises(TypeError, match="onyx= is no field of a declaration; the fields are aten"):
        facts.extend(tinytorch.exp, onyx=len)
    assert entry(tinytorch.add) is facts.fact(tinytorch.add, "onnx") is entry("add_") is not None
    with pytest.raises(TypeError, match="two facts onnx= are given"):
        facts.extend(tinytorch.add, onnx=len)
    assert facts.subject(tinytorch.exp) is facts.subject(tinytorch.Tensor.exp_) is tinytorch.exp.op
    assert facts.fact([], "onnx") is None


# Nothing is patched -------------------------------------------------------------------------------


def test_no_code_object_cell_or_globals_is_written_to() -> None:
    for name, path in modules():
        for node in ast.walk(parsed(path)):
            for target in getattr(node, "targets", None) or [getattr(node, "target", None)]:
                for part in ast.walk(target) if isinstance(target, ast.AST) else ():
                    of_function = isinstance(part, ast.Attribute) and part.attr in ("__code__", "cell_contents")
                    of_globals = isinstance(part, ast.Subscript) and last_name(part.value) == "__globals__"
                    assert not of_function and not of_globals, f"{name}: {ast.unparse(node)}"


def test_no_module_assigns_into_another_one_at_import() -> None:
    for name, path in modules():
        if name == "ops.register":  # the one registry: it gives Tensor its members
            continue
        body = parsed(path).body
        imported = {
            alias.asname or alias.name for each in body if isinstance(each, ast.ImportFrom) for alias in each.names
        }
        statements = list(body)
        while statements:
            statement = statements.pop()
            if isinstance(statement, (ast.If, ast.For, ast.With, ast.Try)):
                statements += statement.body
            for target in getattr(statement, "targets", None) or [getattr(statement, "target", None)]:
                if isinstance(target, (ast.Attribute, ast.Subscript)):
                    root = ast.unparse(target).partition(".")[0].partition("[")[0]
                    assert root not in imported, f"{name}: {ast.unparse(statement)}"
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "setattr":
                assert ast.unparse(call.args[0]) not in imported, f"{name}: {ast.unparse(statement)}"


def test_the_modules_of_a_folder_import_each_other_in_no_circle() -> None:
    edges: dict[str, dict[str, set[str]]] = {}
    for name, path in modules():
        folder = name.partition(".")[0]
        found = {each.name for each in imports(path) if each.by_a_statement}
        imported = {each for each in found if each.startswith(f"{folder}.") and each != name}
        edges.setdefault(folder, {})[name] = imported
    for folder in edges:
        TopologicalSorter(edges[folder]).prepare()  # raises CycleError


def addressable(kernel: object) -> bool:
    """Return whether a saved program can import a kernel: from NumPy, or from a module of `kernels/`."""
    if isinstance(kernel, functools.partial):
        return addressable(kernel.func) and all(not callable(x) or addressable(x) for x in kernel.args)
    module = getattr(kernel, "__module__", None) or getattr(type(getattr(kernel, "__self__", None)), "__module__", "")
    return isinstance(kernel, np.ufunc) or module.startswith("numpy") or home_of(kernel) is not None


def test_every_kernel_is_a_function_of_numpy_or_of_kernels() -> None:
    assert declared.FUNCTIONS
    own = [op for op in registered() if (getattr(op.kernel, "__module__", None) or "").partition(".")[0] != "tests"]
    assert len(own) > 400
    assert not sorted(op.name for op in own if not addressable(op.kernel))


def test_events_have_the_facts_that_their_kind_names_and_that_methods_take() -> None:
    text = (PACKAGE / "core" / "mode.py").read_text("utf-8")
    named = {kind: facts.split(", ") for kind, facts in re.findall(r"(\w+) = enum\.auto\(\)  # ([\w, ]+):", text)}
    assert named.keys() == Event.__members__.keys()
    told = set()
    for node in (each for _, path in modules() for each in ast.walk(parsed(path))):
        if isinstance(node, ast.Call) and last_name(node.func) == "event" and node.args:
            told.add(kind := last_name(node.args[0]))
            assert [each.arg for each in node.keywords] == named[kind]
        for call in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            kinds = call.args if isinstance(call, ast.Call) and last_name(call.func) == "on" else ()
            for needs in [{*named[last_name(kind)]} for kind in kinds]:
                taken = [each.arg for each in node.args.args[1:]]
                needed = {*taken[: len(taken) - len(node.args.defaults)]}
                assert needed <= needs and (needs <= {*taken} or node.args.kwarg), node.name
    assert told == named.keys()
