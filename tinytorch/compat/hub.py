"""`torch.hub`: downloads of weights, and models that a directory's `hubconf.py` defines."""

from __future__ import annotations

import builtins
import hashlib
import importlib.util
import os
import re
import sys
import zipfile
from collections.abc import Callable
from typing import Any
from urllib.parse import urlparse

from tqdm import tqdm as tqdm

from tinytorch import serialization as serialization
from tinytorch._atomic import replacing
from tinytorch.inspect import bars

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_directory: builtins.list[str] = []  # the argument of `set_dir`
_CHUNK = 1 << 17
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the start of a file's SHA-256 sum, in its name


def _get_torch_home() -> str:
    """Return the directory of all downloads: $TORCH_HOME or ~/.cache/torch."""
    cache = os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.expanduser(os.getenv("TORCH_HOME", cache))


def get_dir() -> str:
    """Return the directory where downloads are kept: that of `set_dir`, $TORCH_HOME/hub or ~/.cache/torch/hub."""
    return _directory[0] if _directory else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the directory where downloads are kept."""
    _directory[:] = [os.path.expanduser(d)]


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Download `url` to a file, which exists only once the download is complete.

    Args:
        hash_prefix: the first hexadecimal digits of the file's SHA-256 sum.

    Raises:
        OSError: the connection failed or ended early.
        RuntimeError: the sum differs.
    """
    # Imported here: programs that do not download need not load it.
    from urllib.request import Request, urlopen

    dst = os.path.expanduser(dst)
    digest = hashlib.sha256()
    with (
        urlopen(Request(url, headers={"User-Agent": "tinytorch"})) as response,
        replacing(dst) as file,
        bars.progress(
            total=getattr(response, "length", None), disable=not progress, unit="B", unit_scale=True, leave=True
        ) as bar,
    ):
        while chunk := response.read(_CHUNK):
            file.write(chunk)
            digest.update(chunk)
            bar.update(len(chunk))
        if missing := getattr(response, "length", None):  # of the announced bytes
            raise OSError(f"the answer broke off: {missing} bytes are missing of {url}")
        actual = digest.hexdigest()
        if hash_prefix is not None and not actual.startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{actual}")')


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """Return the object that `torch.load` reads from a file, which is downloaded from `url` unless it exists.

    Args:
        model_dir: the directory of the file; "checkpoints" below `get_dir()` if None.
        check_hash: the file's name is `name-<digits>.ext`: compare the digits with the start of its SHA-256 sum.
        file_name: the file's name; that of the URL if None.
        map_location, weights_only: see `torch.load`.

    Raises:
        OSError: the connection failed or ended early.
        RuntimeError: the sum differs.
    """
    if model_dir is None:
        model_dir = os.path.join(get_dir(), "checkpoints")
    os.makedirs(model_dir, exist_ok=True)
    name = file_name if file_name is not None else os.path.basename(urlparse(url).path)
    path = os.path.join(model_dir, name)
    if not os.path.exists(path):
        sys.stdout.write(f'Downloading: "{url}" to {path}\n')
        match = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, match and match.group(1), progress)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) == 1 and not members[0].is_dir():  # PyTorch's older format, compressed
                archive.extractall(model_dir)
                path = os.path.join(model_dir, members[0].filename)
    return serialization.load(path, map_location=map_location, weights_only=weights_only)


# Models of a directory ----------------------------------------------------------------------------


def _hubconf(directory: Any, source: str) -> Any:
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise NotImplementedError(
            "torch.hub: repositories are not downloaded, since their programs are written for PyTorch; get one "
            'yourself and give its directory and source="local"'
        )
    directory = os.path.expanduser(directory)
    spec = importlib.util.spec_from_file_location("hubconf", os.path.join(directory, "hubconf.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(directory))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(directory))
    dependencies = getattr(module, "dependencies", ())
    missing = [name for name in dependencies if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: Any, name: Any) -> Callable[..., Any]:
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    function: Any = getattr(module, name, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return function


def load(
    repo_or_dir: Any,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a function of a directory's `hubconf.py`, and return its result.

    Args:
        source: "local".
        trust_repo, force_reload, verbose, skip_validation: have no effect on a directory.

    Raises:
        NotImplementedError: `source` is "github".
        RuntimeError: `hubconf.py` has no such function, or a package that it depends on is missing.
    """
    return _entry(_hubconf(repo_or_dir, source.lower()), model)(*args, **kwargs)


def list(
    github: Any,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    verbose: bool = True,
    *,
    source: str = "github",
) -> builtins.list[str]:
    """Return the names of the functions in a `hubconf.py`; see `load`, with `source="local"` for a directory."""
    module = _hubconf(github, source)
    return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]


def help(
    github: Any,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    *,
    source: str = "github",
) -> str | None:
    """Return the docstring of a function in a `hubconf.py`; see `load`, with `source="local"` for a directory."""
    return _entry(_hubconf(github, source), model).__doc__
