"""The name `torch`: how a program that was written for PyTorch finds tinytorch under it.

`install` gives the name to a process, `as_torch` to an environment. Processes that `python -m tinytorch` starts (see
`__main__.py`) have the folder `as_torch` on their path: it holds the modules that an environment gets, which `install`.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import sysconfig
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import tinytorch

from .moved import Finder

__all__ = ["FOLDER", "as_torch", "install", "load_ipython_extension", "undo"]

#: What stands for PyTorch on a path: its modules, and what says to packaging that it is installed.
FOLDER = Path(__file__).parent / "as_torch"
_PACKAGES = ("torch", "functorch")


class _Alias(Finder):
    """Finds a package of ours, and what is in it, under another package's name."""

    def __init__(self, name: str, own: str) -> None:
        super().__init__(lambda each: own + each[len(name) :] if self._ours(each) else None)
        self.name, self.own = name, own

    def _ours(self, each: str) -> bool:
        within = each.startswith(f"{self.name}.") and sys.modules[self.name] is sys.modules.get(self.own)
        return each == self.name or within


class _Instead(_Alias):
    """Finds it for programs only: a package that finds torchvision takes all of it to be there."""

    def _ours(self, each: str) -> bool:
        frame: Any = sys._getframe()
        while frame and ("importlib" in frame.f_code.co_filename or frame.f_globals.get("__package__") == "tinytorch"):
            frame = frame.f_back
        packages = ("site-packages", "dist-packages")
        by_package = bool(frame) and not set(packages).isdisjoint(Path(frame.f_code.co_filename).parts)
        return super()._ours(each) and not (by_package and each == self.name)


_ALIASES = [_Alias("torch", "tinytorch"), _Alias("functorch", "tinytorch.functorch")]
_INSTEAD = [_Instead("torchvision", "tinytorch.torchvision")]


def install() -> None:
    """Let `torch`, and all `torch.x`, mean tinytorch in this process from here on, and in processes that it spawns.

    So do the modules that programs import next. `torchvision` is the one that is installed, or what tinytorch has of
    it. `torch.__name__` is then "torch"; modules keep their files. To do it twice does nothing more.

    Raises:
        RuntimeError: PyTorch has been imported already.

    Example:
        >>> import subprocess, sys
        >>> program = "from tinytorch import compat; compat.install(); import torch.nn; print(torch.nn.ReLU())"
        >>> print(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout)
        ReLU()
        <BLANKLINE>
    """
    if _ALIASES[0] in sys.meta_path:
        return
    if "torch" in sys.modules:
        raise RuntimeError("torch has been imported already, and is PyTorch: call tinytorch.compat.install() before")
    found = importlib.util.find_spec("torch")  # by the path alone
    ours = (FOLDER / "torch" / "__init__.py").read_bytes()
    if found is None or not found.has_location or Path(str(found.origin)).read_bytes() != ours:
        sys.path.insert(1, str(FOLDER))  # spawned processes get the path, and packaging looks there
    tinytorch.__name__ = "torch"
    sys.modules["torch"] = tinytorch
    sys.meta_path[:] = [*_ALIASES, *sys.meta_path, *_INSTEAD]
    importlib.import_module("multiprocessing.connection")  # PyTorch has imported it: programs find it without


def load_ipython_extension(ipython: Any) -> None:
    """Do for a notebook, which says `%load_ext tinytorch`, what `compat.install` does."""
    install()


# An environment -----------------------------------------------------------------------------------


def _installed() -> list[importlib.metadata.Distribution]:
    """Return the distributions named torch, but for the one in `FOLDER`."""
    found = importlib.metadata.distributions(name="torch")
    return [each for each in found if Path(str(each.locate_file(""))) != FOLDER]


def _is_ours(distribution: importlib.metadata.Distribution) -> bool:
    return "tinytorch" in distribution.version


def as_torch() -> list[Path]:
    """Write a distribution named torch into the environment, whose module `torch` is tinytorch; return its files.

    Pip is told to keep it, by the environment's `pip.conf`: else it would fetch PyTorch for a package that asks for a
    later version, rather than an earlier one of that package.

    Raises:
        RuntimeError: PyTorch is installed, or tinytorch is not.
    """
    if all(map(_is_ours, _installed())):
        undo()  # of another version, perhaps
    site = Path(sysconfig.get_path("purelib"))
    there = [str(each.locate_file("torch")) for each in _installed()]
    there += [str(site / name) for name in _PACKAGES if (site / name).exists()]
    if there:
        raise RuntimeError(f"PyTorch is installed in this environment: {there[0]}. Take a new one, or remove it")
    if subprocess.run([sys.executable, "-EPc", "import tinytorch"], capture_output=True).returncode:
        raise RuntimeError(f"tinytorch is not installed for {sys.executable}: install it there before")

    settings = Path(sys.prefix, "pip.ini" if os.name == "nt" else "pip.conf")
    metadata = (FOLDER / "torch.dist-info" / "METADATA").read_text("utf-8")
    version = f"{tinytorch.__version__}"
    info = f"torch-{version}.dist-info"
    contents = {f"{name}/__init__.py": (FOLDER / name / "__init__.py").read_text("utf-8") for name in _PACKAGES}
    contents[f"{info}/METADATA"] = metadata
    contents[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: tinytorch\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    contents[f"{info}/INSTALLER"] = "tinytorch\n"
    contents[f"{info}/constraints.txt"] = f"torch=={version}\n"
    kept = (site / info / "constraints.txt").as_uri()  # (pip splits paths at spaces)
    if settings.exists():
        warnings.warn(f"to keep pip from fetching PyTorch, add 'constraint = {kept}' to {settings}", stacklevel=2)
    else:
        contents[os.path.relpath(settings, site)] = f"[global]\nconstraint = {kept}\n"
    program = Path(sysconfig.get_path("scripts"), "torchrun")
    if os.name != "nt":
        text = f"#!{sys.executable}\nfrom tinytorch.distributed.run import main\n\nmain()\n"
        contents[os.path.relpath(program, site)] = text
    contents[f"{info}/RECORD"] = "".join([f"{path},{_hash(text)}\n" for path, text in contents.items()])
    contents[f"{info}/RECORD"] += f"{info}/RECORD,,\n"
    written = []
    try:
        for path, text in contents.items():
            (site / path).parent.mkdir(exist_ok=True)
            written.append(Path(os.path.normpath(site / path)))
            written[-1].write_text(text, "utf-8", newline="\n")
            if text.startswith("#!"):
                written[-1].chmod(0o755)
    except BaseException:
        _remove(written)
        raise
    return written


def _hash(text: str) -> str:
    """Return the hash and the length of a file, as a wheel's record has them."""
    data = text.encode()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return f"sha256={digest},{len(data)}"


def undo() -> list[Path]:
    """Take out of the environment what `as_torch` wrote; return which files that were.

    Raises:
        RuntimeError: what is installed there is PyTorch.
    """
    removed = []
    for each in _installed():
        if not _is_ours(each):
            raise RuntimeError(f"what is installed here is PyTorch: {each.locate_file('torch')}")
        removed += [Path(os.path.normpath(path.locate())) for path in each.files or []]
    _remove(removed)
    return removed


def _remove(files: list[Path]) -> None:
    """Remove files, what Python compiled of them, and the folders that are empty then."""
    for file in files:
        for each in [file, *file.parent.glob(f"__pycache__/{file.stem}.*.pyc")]:
            each.unlink(missing_ok=True)
        for folder in (file.parent / "__pycache__", file.parent):
            with suppress(OSError):  # not empty, or not there
                folder.rmdir()
