"""What the playground runs in Python: a program, with all that it prints, draws and saves given to the page.

`worker.js` imports this module in Pyodide, as `playground_runtime`. It needs nothing of a browser, so the tests import
it as well. A `Runtime` is given a function `post(message, data)`, which it calls with a message as JSON, and with the
bytes of a file. The kinds of messages are:

    output   stream ("stdout", "stderr" or "prompt") and text
    points   curves: {name: [[x, y], ...]}, what is new in each
    display  html or svg: the value of the last expression, or a figure
    file     name and size of a file that the program wrote (its bytes are `data`, unless it is too large)
"""

from __future__ import annotations

import ast
import builtins
import doctest
import io
import json
import linecache
import math
import os
import re
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["Runtime", "show_figures"]

PROGRAM = "program.py"  # the file of the program, in the folder in which it runs
MOST_CURVES = 6  # of losses: further ones share one
LARGEST = 64_000_000  # bytes of a file that is given to the page
PROMPTS = re.compile(r"\s*>>> ")  # how an interactive session begins

Post = Callable[[str, bytes | None], None]

_current: Runtime | None = None


class Outlet:
    """Collects what a program says, and posts it: at once, unless it says so much that the page could not follow.

    As on a terminal, a text waits for the end of its line, or for `flush`.

    Args:
        post: posts a message.
        burst: how many texts may be posted one after the other.
        rate: how many may be posted per second, beyond these.
        interval: seconds between the posts of points.
    """

    def __init__(self, post: Post, burst: int = 100, rate: float = 40.0, interval: float = 0.08) -> None:
        self._post, self._burst, self._rate, self._interval = post, burst, rate, interval
        self._credit, self._since, self._drawn = float(burst), time.perf_counter(), 0.0
        self._texts: list[tuple[str, str]] = []
        self._points: dict[str, list[tuple[float, float | None]]] = {}

    def write(self, stream: str, text: str) -> None:
        """Say a text."""
        self._texts.append((stream, text))
        if "\n" in text:
            self.hurry()

    def point(self, curve: str, x: float, y: float) -> None:
        """Add a point to a curve; a number that is not finite is a gap."""
        self._points.setdefault(curve, []).append((x, y if math.isfinite(y) else None))
        if time.perf_counter() - self._drawn > self._interval:
            self.flush()

    def hurry(self) -> None:
        """Post what has been said, if not too much has been posted already."""
        now = time.perf_counter()
        self._credit = min(self._burst, self._credit + (now - self._since) * self._rate)
        self._since = now
        if self._credit >= 1:
            self._credit -= 1
            self.flush()

    def flush(self) -> None:
        """Post what has been said."""
        texts, points = self._texts, self._points
        self._texts, self._points = [], {}
        start = 0
        for k, (stream, _) in enumerate(texts):
            if k + 1 == len(texts) or texts[k + 1][0] != stream:
                self.post("output", stream=stream, text="".join(text for _, text in texts[start : k + 1]))
                start = k + 1
        if points:
            self._drawn = time.perf_counter()
            self.post("points", curves=points)

    def post(self, kind: str, data: bytes | None = None, **said: Any) -> None:
        """Post a message now."""
        self._post(json.dumps({"kind": kind, **said}), data)


class Stream(io.TextIOBase):
    """A terminal: `sys.stdout` or `sys.stderr` of the program."""

    encoding = "utf-8"  # type: ignore[assignment]

    def __init__(self, outlet: Outlet, name: str) -> None:
        self._outlet, self._name = outlet, name

    def isatty(self) -> bool:
        """Return True: bars of progress are drawn."""
        return True

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Show a text, and return its length."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if text:
            self._outlet.write(self._name, text)
        return len(text)

    def flush(self) -> None:
        """Show what was written, also of a line that has not ended."""
        self._outlet.hurry()


class Scalars:
    """`torch.utils.tensorboard.SummaryWriter` of the playground: scalars are points of its curves.

    It takes the place of tensorboardX's, from which tinytorch's is derived.
    """

    def __init__(self, logdir: str | None = None, comment: str = "", **options: Any) -> None:
        self.logdir = logdir or f"runs{comment}"
        self._counts: dict[str, int] = {}

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, *args: Any, **kwargs: Any
    ) -> None:
        """Add a point to the curve `tag`; without a step, the one after the last."""
        step = self._counts.get(tag, -1) + 1 if global_step is None else int(global_step)
        self._counts[tag] = step
        if _current is not None:
            _current.outlet.point(tag, step, float(scalar_value))

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: int | None = None, *args: Any, **kwargs: Any
    ) -> None:
        """Add a point to each of several curves."""
        for tag, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{tag}", value, global_step)

    def flush(self) -> None:
        """Show what has been added."""
        if _current is not None:
            _current.outlet.flush()

    def close(self) -> None:
        """Show what has been added."""
        self.flush()

    def __enter__(self) -> Scalars:
        """Return the writer."""
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("add_"):
            raise NotImplementedError(f"SummaryWriter.{name}: the playground draws scalars alone")
        raise AttributeError(f"'SummaryWriter' object has no attribute '{name}'")


class Runtime:
    """Runs programs in a folder, each as a new `__main__`.

    Args:
        post: is called with a message as JSON, and with bytes or None.
        folder: where programs run, and their files are.
        packages: the packages that the page loads for programs that import them.
    """

    def __init__(self, post: Post, folder: str, packages: str = "") -> None:
        import tqdm

        import tinytorch
        from tinytorch import compat

        global _current
        _current = self
        tqdm.tqdm.monitor_interval = 0  # it would start a thread
        os.environ["MPLBACKEND"] = f"module://{__name__.replace('runtime', 'figures')}"
        compat.install()
        self.outlet, self.folder = Outlet(post), Path(folder).resolve()
        self.program, self._packages = self.folder / PROGRAM, packages
        self._torch, self._random = tinytorch, tinytorch.get_rng_state()
        self._dtype = tinytorch.get_default_dtype()
        self._counts: dict[str, int] = {}
        self._curves: dict[tuple[int, ...], str] = {}  # by the lines that lead to a call of `backward`
        self._files: dict[Path, tuple[int, int]] = {}
        self._looked = 0.0
        package = types.ModuleType("tensorboardX")
        package.SummaryWriter = Scalars  # type: ignore[attr-defined]
        writer = types.ModuleType("tensorboardX.writer")
        package.writer = writer  # type: ignore[attr-defined]
        sys.modules.update({"tensorboardX": package, "tensorboardX.writer": writer})

    def versions(self) -> str:
        """Return what runs programs, as a line for the page."""
        from tinytorch.kernels import native

        python = ".".join(map(str, sys.version_info[:2]))
        kernels = "with native kernels" if native.instructions else "on NumPy alone"
        return f"tinytorch {self._torch.__version__.partition('+tinytorch')[2]} {kernels}, Python {python}"

    def warm(self) -> None:
        """Import what most programs need, by a step of training that shows nothing."""
        outlet, self.outlet = self.outlet, Outlet(lambda message, data: None)
        self.run(
            "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader, TensorDataset\n"
            "model = nn.Sequential(nn.Flatten(), nn.Linear(2, 2), nn.ReLU())\n"
            "optimizer = torch.optim.Adam(model.parameters())\n"
            "for x, y in DataLoader(TensorDataset(torch.ones(2, 2), torch.ones(2).long())):\n"
            "    nn.functional.cross_entropy(model(x), y).backward()\n    optimizer.step()\n"
        )
        self.outlet = outlet

    def run(self, code: str, columns: int = 80) -> tuple[bool, int]:
        """Run a program, or an interactive session with its prompts.

        Args:
            code: the program.
            columns: the width of the page's output, in characters.

        Returns:
            whether it ended without an error, and the line of the error, or 0.
        """
        from tinytorch.autograd import api

        self._counts.clear()
        self._curves.clear()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.program.write_text(code, "utf-8")
        linecache.checkcache(str(self.program))
        main = types.ModuleType("__main__")
        main.__file__ = str(self.program)
        main.__builtins__ = builtins  # type: ignore[attr-defined]
        changed: dict[str, Any] = {
            "stdout": Stream(self.outlet, "stdout"), "stderr": Stream(self.outlet, "stderr"), "stdin": io.StringIO(),
            "argv": [PROGRAM], "path": [str(self.folder), *sys.path],
        }  # fmt: skip
        before = {name: getattr(sys, name) for name in changed}
        where, outer = os.getcwd(), sys.modules["__main__"]
        for name, value in changed.items():
            setattr(sys, name, value)
        sys.modules["__main__"], api.observer = main, self._note_loss
        os.environ["COLUMNS"] = str(columns)
        os.chdir(self.folder)
        self._torch.set_rng_state(self._random)
        self._look()  # so that files from before are not taken for the program's
        try:
            if PROMPTS.match(code):
                return self._session(code, main)
            return self._program(code, main)
        finally:
            self._torch.set_grad_enabled(True)
            self._torch.set_default_dtype(self._dtype)
            api.observer = None
            self.outlet.flush()
            self._look(report=True)
            os.chdir(where)
            sys.modules["__main__"] = outer
            for name, value in before.items():
                setattr(sys, name, value)

    def _program(self, code: str, main: types.ModuleType) -> tuple[bool, int]:
        try:
            body = ast.parse(code, str(self.program)).body
            quiet = code.rstrip().endswith(";")
            last = body.pop() if body and isinstance(body[-1], ast.Expr) and not quiet else None
            exec(self._compiled(ast.Module(body, []), "exec"), vars(main))
            if isinstance(last, ast.Expr):
                self._display(eval(self._compiled(ast.Expression(last.value), "eval"), vars(main)))
            self._figures()
        except BaseException as error:
            return self._ended(error)
        return True, 0

    def _compiled(self, tree: Any, mode: str) -> Any:
        return compile(tree, str(self.program), mode, dont_inherit=True)

    def _session(self, code: str, main: types.ModuleType) -> tuple[bool, int]:
        """Run the examples of a session one after the other, also those after an error."""
        right, line = True, 0
        for example in doctest.DocTestParser().get_examples(code):
            first, *rest = example.source.rstrip("\n").split("\n")
            self.outlet.write("prompt", "".join([f">>> {first}\n", *(f"... {each}\n" for each in rest)]))
            try:
                source = "\n" * example.lineno + example.source
                exec(compile(source, str(self.program), "single", dont_inherit=True), vars(main))
                self._figures()
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt | SystemExit):
                    return self._ended(error)
                _, where = self._ended(error)
                right, line = (right, line) if example.exc_msg else (False, line or where)
        return right, line

    def _ended(self, error: BaseException) -> tuple[bool, int]:
        """Show why a program ended, and return whether it was right, and where it was."""
        if isinstance(error, SystemExit):
            if error.code and not isinstance(error.code, int):
                print(error.code, file=sys.stderr)
            return not error.code, 0
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != str(self.program):
            trace = trace.tb_next
        if isinstance(error, KeyboardInterrupt):
            print("\nStopped.", file=sys.stderr)
            return False, 0
        if isinstance(error, ModuleNotFoundError) and self._packages:
            error.add_note(f"The playground has NumPy, and loads {self._packages} for an import that is not indented.")
        if trace is not None or isinstance(error, SyntaxError):  # (else an error of this file)
            error = error.with_traceback(trace)
        sys.excepthook(type(error), error, error.__traceback__)  # (tinytorch's: with notes)
        line = (error.lineno or 0) if isinstance(error, SyntaxError) and error.filename == str(self.program) else 0
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == str(self.program):
                line = trace.tb_lineno
            trace = trace.tb_next
        return False, line

    # What is shown

    def _display(self, value: Any) -> None:
        """Show the value of the last expression as a notebook does."""
        if value is None:
            return
        builtins._ = value  # type: ignore[attr-defined]
        if callable(getattr(value, "savefig", None)):
            self.figure(value)
            return
        for kind, name in (("html", "_repr_html_"), ("svg", "_repr_svg_")):
            method = None if isinstance(value, type) else getattr(value, name, None)
            text = method() if callable(method) else None
            if text:
                self.outlet.flush()
                self.outlet.post("display", **{kind: text})
                return
        print(repr(value))

    def figure(self, figure: Any) -> None:
        """Show a figure of matplotlib."""
        stream = io.StringIO()
        figure.savefig(stream, format="svg", bbox_inches="tight")
        self.outlet.flush()
        self.outlet.post("display", svg=stream.getvalue()[stream.getvalue().index("<svg") :])

    def _figures(self) -> None:
        """Show the figures that pyplot has open, and close them."""
        plt = sys.modules.get("matplotlib.pyplot")
        for number in plt.get_fignums() if plt is not None else ():
            self.figure(plt.figure(number))  # type: ignore[union-attr]
            plt.close(number)  # type: ignore[union-attr]

    def _note_loss(self, tensors: Any) -> None:
        """Add the value of a loss to the curve of its name, when `backward` is called."""
        loss = tensors[0] if isinstance(tensors, (list, tuple)) and len(tensors) == 1 else tensors
        array = getattr(loss, "_array", None)
        if getattr(array, "size", 0) != 1 or getattr(getattr(array, "dtype", None), "kind", "") != "f":
            return
        curve = self._name_of_loss()
        self._counts[curve] = self._counts.get(curve, 0) + 1
        self.outlet.point(curve, self._counts[curve], float(array.reshape(-1)[0]))
        if time.perf_counter() - self._looked > 2:
            self._look(report=True)

    def _name_of_loss(self) -> str:
        """Return the variable whose `backward` the program calls; with a line, if it came there in another way before.

        So a function that takes steps for two networks draws two curves.
        """
        frame: Any = sys._getframe(2)
        lines = []
        while frame is not None:
            if frame.f_code.co_filename == str(self.program):
                lines.append(frame.f_lineno)
            frame = frame.f_back
        way = tuple(lines)
        if way not in self._curves:
            line = linecache.getline(str(self.program), way[0] if way else 0)
            found = re.search(r"autograd\.backward\(\W*(\w+)", line) or re.search(r"(\w+)\.backward\(", line)
            name = found[1] if found else "loss"
            first = next((other for other, curve in self._curves.items() if curve == name), way)
            place = next((line for line, other in zip(way, first, strict=False) if line != other), 0)
            self._curves[way] = f"{name} (line {place})" if place and len(self._curves) < MOST_CURVES else name
        return self._curves[way]

    def _look(self, report: bool = False) -> None:
        """Look for files that were written, and give them to the page."""
        self._looked = time.perf_counter()
        for path in sorted(self.folder.rglob("*")):
            hidden = any(part.startswith((".", "__pycache__")) for part in path.relative_to(self.folder).parts)
            if hidden or path == self.program or not path.is_file():
                continue
            said = path.stat()
            if self._files.get(path) == (said.st_mtime_ns, said.st_size):
                continue
            self._files[path] = (said.st_mtime_ns, said.st_size)
            if report:
                data = path.read_bytes() if said.st_size <= LARGEST else None
                self.outlet.post("file", data, name=path.relative_to(self.folder).as_posix(), size=said.st_size)


def show_figures() -> None:
    """Show the figures that pyplot has open, and close them."""
    if _current is not None:
        _current._figures()
