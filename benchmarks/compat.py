"""python -m benchmarks compat [--cache FOLDER] [--page] [PACKAGE ...]: other people's tests, with PyTorch and without.

The own tests of packages that require torch run, unchanged, in two environments: one with PyTorch, and one where
`python -m tinytorch as-torch` has put tinytorch in its place. pip makes both in FOLDER (`~/.cache/tinytorch/compat`)
and fetches there the packages' sources, of which the versions and hashes stand below. Nothing comes into this
repository but the first part of `docs/coverage.md`, which says how many of the tests that PyTorch passes tinytorch
passes, and why each other one fails.

Each test counts once, by its name; one that takes more than a minute fails. Results are kept in FOLDER, so that a call
with PACKAGE runs these packages alone and writes the page of all. With `--page` nothing runs. pip gets PyTorch from
where it is configured to; `PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu` selects its build for processors.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
import textwrap
import time
import venv
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.page import processor, put
from tinytorch.kernels import native

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "coverage.md"
SIDES = ("pytorch", "tinytorch")
PYTORCH = "torch==2.13.0"
#: What tests and the building of the sources need beside the packages, and what packages find as a dependency of torch.
TOOLS = (
    "pytest pytest-timeout pytest-xdist flaky scikit-learn matplotlib setuptools setuptools-scm wheel hatchling "
    "hatch-vcs hatch-fancy-pypi-readme flit_core poetry-core pdm-backend typing_extensions"
).split()
SECONDS = 60  # for one test
MINUTES = 15  # for the tests of one package


class Suite(NamedTuple):
    """The tests of a package, in its source distribution."""

    package: str
    version: str
    sha256: str
    arguments: list[str]  # of pytest, in the folder of the source
    part: str = ""  # which of the package's tests these are (some packages have an hour of tests); all if empty


def _paths(folder: str, names: str) -> list[str]:
    return [f"{folder}/{name}" for name in names.split()]


SUITES = [
    Suite("autoray", "0.11.0", "ef9c23d8307f2e5030d10dd222d304401450157172a6fcc6f7456b6e82681bf4",
          ["tests/test_autoray.py", "-k", "torch"], "those of PyTorch in `test_autoray.py`"),
    Suite("e3nn", "0.6.0", "5c2b414e9527aad27d755ae9546596e3f7706f45a21dae71c7deedb6c048e4de",
          [*_paths("tests", "math o3/irreps_test.py o3/rotation_test.py o3/wigner_test.py o3/linear_test.py"),
           "-o", "python_files=*_test.py"], "`math`, and irreps, rotations, Wigner matrices and linear layers of `o3`"),
    Suite("einops", "0.8.2", "609da665570e5e265e27283aab09e7f279ade90c4f01bcfca111f3d3e13f2827",
          ["einops/tests", "-k", "not compile"], "without those of `torch.compile`"),
    Suite("gpytorch", "1.15.2", "380625e93f851b85f772b25c5fb0a6c6d2e3eb2ef667f1e566ab4f95b8775361",
          _paths("test", "constraints distributions likelihoods means priors mlls"),
          "`constraints`, `distributions`, `likelihoods`, `means`, `mlls`, `priors`"),
    Suite("linear_operator", "0.6.1", "3fba49a8080d16f822a5d870f462279cd6afbcf4ed670f4511b38fad96f61831",
          _paths("test", "functions utils"), "`functions`, `utils`"),
    Suite("normflows", "1.7.3", "0cc539869c9970d28041edb4d7a28006c1cec6241d9d0d553975b5b1155c2071",
          ["normflows", "-o", "python_files=*_test.py"]),
    Suite("opt_einsum", "3.4.0", "96ca72f1b886d148241348783498194c577fa30a8faac108586b14f1ba4473ac",
          ["opt_einsum/tests/test_backends.py", "-k", "torch"], "those of PyTorch in `test_backends.py`"),
    Suite("pyro-ppl", "1.9.2", "e4a4b089023777c0bc98c01db4c6ed5e39a1001985ebccfe210dc545bf5b24dd",
          _paths("tests", "test_primitives.py test_settings.py test_util.py"),
          "primitives, settings, utilities (the archive has none of distributions)"),
    Suite("pytorch-ignite", "0.5.5", "2c14de75c939a3cc06d2e7de00b1e0a261917ef9bd874dac2e69d789dfa9cc64",
          _paths("tests/ignite/engine", "test_create_supervised.py test_custom_events.py test_engine.py "
                 "test_engine_state_dict.py test_event_handlers.py"), "`engine`, without `test_deterministic.py`"),
    Suite("pytorch-warmup", "0.2.0", "da01fef6a75a0db3502f5566957ec3d28fc6d754bf5cceba3165815411a7278f",
          ["test"]),
    Suite("schedulefree", "1.4.1", "69ef25601d1fc0d8dd00cb36f9af78833f88b7846f1bb6ddecc9f144f3e9f7cb",
          ["schedulefree/test_schedulefree.py"]),
    Suite("skorch", "1.4.0", "f7a5d3c13a3aecf0a0fe689ff25188be1145a95268f8fe81f01aaa9fbd7cead1",
          _paths("skorch/tests", "test_dataset.py test_helper.py test_history.py test_setter.py test_utils.py"),
          "data sets, helpers, history, setters, utilities"),
    Suite("tensorly", "0.10.0", "56a2c55062b285f4c39c6dc603e4883e02d9d5d2c318fd36f5610967a4425e9c",
          _paths("tensorly", "tests tenalg"), "`tests`, `tenalg`, with `TENSORLY_BACKEND=pytorch`"),
    Suite("torch-optimizer", "0.3.0", "b2180629df9d6cd7a2aeabe71fa4a872bba938e8e275965092568cd9931b924c",
          _paths("tests", "test_basic.py test_param_validation.py"), "`test_basic.py`, `test_param_validation.py`"),
    Suite("torchsde", "0.2.6", "81d074d3504f9d190f1694fb526395afbe4608ee43a88adb1262a639e5b4778b",
          _paths("tests", "test_brownian_path.py test_brownian_tree.py"),
          "Brownian paths and trees (others need files that the archive lacks)"),
    Suite("zuko", "1.6.0", "edc516e51bbbf9d64e7663b617cf9293c6e1e6bbfcb39559bc383383e6663b04",
          ["tests"]),
]  # fmt: skip
#: Variables by which packages select PyTorch, and what keeps runs alike.
VARIABLES = {
    "EINOPS_TEST_BACKENDS": "numpy,torch", "TENSORLY_BACKEND": "pytorch", "CUDA_VISIBLE_DEVICES": "",
    "MPLBACKEND": "Agg", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
}  # fmt: skip


class Cause(NamedTuple):
    """Why tests fail: those whose `package::class::name: message` the pattern matches."""

    pattern: str
    why: str


#: In the order in which they are tried.
CAUSES = [
    Cause(
        r"^gpytorch::.*test_multitask_gaussian.*test_setters: .*0\.5 != 0\.50000005",
        "rounding: where the test compares to 7 places, `softplus` is one unit in the last place above the exact "
        "value, and PyTorch's one below",
    ),
    Cause(
        r"^zuko::.*test_univariate_transforms.*Gaussianization",
        "chance: the test draws without a seed a function that it inverts to 1e-4; of 60 seeds PyTorch fails with 43, "
        "tinytorch with 39",
    ),
]

#: What the page says of packages that were looked at and are not in `SUITES`.
ABSENT = (
    "Packages whose source archives have no tests are not here: torchmetrics (0.2, 0.5, 0.7 and 1.9 were looked at)."
)


def run(command: Iterable[Any], **options: Any) -> None:
    """Run a command, and print it."""
    command = [str(part) for part in command]
    print("$", *command, flush=True)
    subprocess.run(command, check=True, **options)


def prepare(cache: Path, suites: list[Suite]) -> None:
    """Make the two environments, install the packages in both, and fetch and unpack their sources."""
    pins = [f"{suite.package}=={suite.version}" for suite in suites]
    for side in SIDES:
        python = cache / side / "bin" / "python"
        if not python.exists():
            venv.create(cache / side, with_pip=True)
        pip = [python, "-m", "pip", "install", "--quiet"]
        if side == "pytorch":
            run([*pip, PYTORCH, "numpy"])
        else:
            run([*pip, ROOT])
            run([python, "-m", "tinytorch", "as-torch"], cwd=cache, stdout=subprocess.DEVNULL)
        run([*pip, *TOOLS, *pins])
    wanted = cache / "sources.txt"
    wanted.write_text(
        "".join(f"{pin} --hash=sha256:{suite.sha256}\n" for pin, suite in zip(pins, suites, strict=True)), "utf-8"
    )
    options = "--quiet --no-deps --no-binary :all: --no-build-isolation --require-hashes".split()
    run([cache / "pytorch/bin/python", "-m", "pip", "download", *options, "-r", wanted, "-d", cache / "sdist"])


def source(cache: Path, suite: Suite) -> Path:
    """Return the folder of a package's source, unpacked from its archive."""
    name = re.compile(rf"{re.sub('[-_.]', '[-_.]', suite.package)}-{re.escape(suite.version)}", re.IGNORECASE)
    archive = next(path for path in (cache / "sdist").iterdir() if name.match(path.name))
    folder = cache / "src" / archive.name.removesuffix(".tar.gz")
    if not folder.exists():
        with tarfile.open(archive) as file:
            file.extractall(cache / "src", filter="data")
    return folder


def results(report: str) -> dict[str, tuple[str, str]]:
    """Return the outcome of each test in a JUnit report, and its message: passed, failed or skipped.

    Of tests with the same name the worst outcome counts.
    """
    found: dict[str, tuple[str, str]] = {}
    order = ["skipped", "passed", "failed"]
    for case in ElementTree.fromstring(report).iter("testcase"):
        outcome, message = "passed", ""
        for child in case:
            if child.tag in ("failure", "error", "skipped"):
                outcome = "skipped" if child.tag == "skipped" else "failed"
                message = child.get("message") or ""
                if message == "collection failure":
                    message = next(
                        (line[2:].strip() for line in (child.text or "").splitlines() if line[:2] == "E "), ""
                    )
        key = f"{case.get('classname')}::{case.get('name')}"
        if order.index(outcome) >= order.index(found.get(key, ("skipped", ""))[0]):
            found[key] = outcome, " ".join(message.split())[:300]
    return found


def tested(cache: Path, suite: Suite, side: str) -> dict[str, Any]:
    """Run the tests of a package on one side, and return their results with the seconds that they took."""
    report, log, settings = (cache / f"{side}-{suite.package}{end}" for end in (".xml", ".txt", ".ini"))
    settings.write_text("[pytest]\n", "utf-8")  # not the package's own, which asks for plugins
    report.unlink(missing_ok=True)
    command = [cache / side / "bin" / "python", "-m", "pytest", "-q", "-W", "default", "-p", "no:cacheprovider"]
    command += ["-c", settings, "--rootdir=.", f"--timeout={SECONDS}", f"--junitxml={report}", *suite.arguments]
    start = time.perf_counter()
    with log.open("w", encoding="utf-8") as file:
        # Some tests start `python`, which has to be the environment's.
        environment = os.environ | VARIABLES | {"PATH": f"{cache / side / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        environment.pop("PYTHONPATH", None)
        process = subprocess.Popen(
            [str(part) for part in command], cwd=source(cache, suite), env=environment, stdout=file, stderr=file
        )
        try:
            process.wait(MINUTES * 60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    seconds = time.perf_counter() - start
    if not report.exists():
        sys.exit(f"{suite.package} has no report with {side}: see {log}")
    return {"seconds": seconds, "tests": results(report.read_text("utf-8"))}


def failures(package: str, sides: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each test that passes with PyTorch alone, its message and the cause."""
    theirs, ours = (sides[side]["tests"] for side in SIDES)
    for name, (outcome, _) in theirs.items():
        got, message = ours.get(name, ("missing", ""))
        if outcome != "passed" or got == "passed":
            continue
        if got == "missing":  # its file could not be imported: then the file is the test that failed
            parts = re.split(r"::|\.", name)
            files = ((key, value[1]) for key, value in ours.items() if key.startswith("::") and value[0] == "failed")
            message = next((text for key, text in files if set(key[2:].split(".")) <= set(parts)), "not collected")
        line = f"{package}::{name}: {message}"
        why = next((cause.why for cause in CAUSES if re.search(cause.pattern, line)), "not known")
        yield name, message, why


def page(kept: dict[str, Any]) -> str:
    """Return the part of docs/coverage.md from the results that were kept."""
    rows = []
    causes, examples = Counter[tuple[str, str]](), dict[tuple[str, str], tuple[str, str]]()
    passed = total = 0
    for suite in SUITES:
        if suite.package not in kept:
            continue
        sides = kept[suite.package]["sides"]
        wanted = sum(outcome == "passed" for outcome, _ in sides["pytorch"]["tests"].values())
        lost = list(failures(suite.package, sides))
        passed, total = passed + wanted - len(lost), total + wanted
        for name, message, why in lost:
            causes[suite.package, why] += 1
            examples.setdefault((suite.package, why), (name.rpartition("::")[2], message))
        share = f"{100 * (wanted - len(lost)) / wanted:.1f} %" if wanted else "-"
        rows.append(
            f"| {suite.package} {suite.version} | {suite.part or 'all'} | {wanted} | {wanted - len(lost)} | {share} |"
        )

    def cell(text: str) -> str:
        return text.replace("|", "\\|").replace("`", "'").replace("<", "&lt;")

    lines = []
    for (package, why), count in sorted(causes.items()):
        name, message = examples[package, why]
        lines.append(f"| {package} | {count} | {why} | `{cell(name)}`: {cell(message[:160])} |")
    share = f"{100 * passed / max(total, 1):.2f} %"
    intro = (
        "The tests that other people wrote for their packages, which require torch, run here unchanged: once with "
        "PyTorch, and once where `python -m tinytorch as-torch` has put tinytorch in its place. "
        f"**Of the {total:,} tests that PyTorch passes, tinytorch passes {passed:,}: {share}.** What PyTorch fails or "
        "skips does not count."
    )
    places = "; ".join(dict.fromkeys(each["where"] for each in kept.values()))
    source = (
        f"{places}. `python -m benchmarks compat` fetches the packages, runs their tests and writes this part; the "
        "versions and the hashes stand in `benchmarks/compat.py`."
    )
    parts = [
        "## The tests of other packages",
        *(textwrap.fill(text, 120, break_on_hyphens=False) for text in (intro, source)),
    ]
    head = ["| package | tests | PyTorch passes | of these tinytorch | |", "|---|---|---|---|---|"]
    parts.append("\n".join([*head, *rows, f"| {len(rows)} packages | | {total:,} | {passed:,} | {share} |"]))
    parts.append(textwrap.fill(ABSENT, 120, break_on_hyphens=False))
    parts.append("### Why the others fail")
    head = ["| package | tests | cause | for example |", "|---|---|---|---|"]
    parts.append("\n".join([*head, *lines]) if lines else "There are none.")
    return "\n\n".join(parts)


def where() -> str:
    """Return the date, the versions and the processor."""
    machine = f"{processor()}, {os.cpu_count()} cores"
    kernels = f"native kernels for {native.instructions}" if native.instructions else "no native kernels"
    versions = f"Python {platform.python_version()}, PyTorch {PYTORCH.partition('==')[2]}, {kernels}"
    return f"Run on {datetime.datetime.now(datetime.UTC):%d %B %Y} on {platform.machine()} ({machine}): {versions}"


def main(arguments: list[str]) -> int:
    """Run the tests of the packages on both sides and write their part of docs/coverage.md."""
    names = [suite.package for suite in SUITES]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks compat", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"{', '.join(names)} (all)")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "tinytorch" / "compat")
    parser.add_argument("--page", action="store_true", help="only write the page, from the results of earlier runs")
    options = parser.parse_args(arguments)
    unknown = set(options.packages) - set(names)
    if unknown:
        parser.error(f"no such package: {', '.join(sorted(unknown))} (there are {', '.join(names)})")
    cache = options.cache.resolve()
    if cache.is_relative_to(ROOT):
        parser.error("argument --cache: a folder outside of the repository")
    cache.mkdir(parents=True, exist_ok=True)
    if not options.page:
        suites = [suite for suite in SUITES if not options.packages or suite.package in options.packages]
        prepare(cache, suites)
        for suite in suites:
            source(cache, suite)
            with ThreadPoolExecutor() as pool:  # the two sides at once
                sides = dict(
                    zip(SIDES, pool.map(lambda side, suite=suite: tested(cache, suite, side), SIDES), strict=True)
                )
            lost = len(list(failures(suite.package, sides)))
            times = ", ".join(f"{sides[side]['seconds']:.0f} s with {side}" for side in SIDES)
            print(f"{suite.package}: {lost} tests pass with PyTorch alone ({times})", flush=True)
            (cache / f"{suite.package}.json").write_text(json.dumps({"where": where(), "sides": sides}), "utf-8")
    files = {suite.package: cache / f"{suite.package}.json" for suite in SUITES}
    kept = {name: json.loads(file.read_text("utf-8")) for name, file in files.items() if file.exists()}
    if not kept:
        parser.error("there are no results of earlier runs")
    PAGE.write_text(put(PAGE.read_text("utf-8"), "tests", page(kept)), "utf-8")
    print(f"wrote {PAGE}")
    return 0
