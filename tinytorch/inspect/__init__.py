"""Tools for inspection: profiles, summaries, drawings, plots, timings, and what explains a program that goes wrong.

The functions below are imported when they are first used. The modules that define them have other names than the
functions, since a module of a function's name would hide it.

| module | contents |
|---|---|
| `profiler`, `summary`, `benchmark` | `torch.profiler`, `torch.summary`, `torch.utils.benchmark` |
| `finite`, `reproduction`, `comparison` | `nonfinite`, `reproducible` and `compare`, which PyTorch has not |
| `explanation`, `pages` | `explain`, and its HTML |
| `why` | why a value has no gradient: by what `watching` has noted, else by what the source says |
| `places`, `source` | where in a program something happens, from Python's stack; its syntax trees |
| `drawing` | `draw` records a call of a model, and draws it by the layout of `autograd.picture` |
| `notebook` | the HTML of tensors and summaries; `Tensor._repr_html_` is bound from there on first use |
| `plots`, `bars` | plots by matplotlib, bars by tqdm |
| `mistakes/`, `doctor/` | the notes of errors; what keeps a network from learning |
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tinytorch.inspect.bars import progress as progress
    from tinytorch.inspect.comparison import compare as compare
    from tinytorch.inspect.doctor import Doctor as Doctor
    from tinytorch.inspect.drawing import draw as draw
    from tinytorch.inspect.explanation import explain as explain
    from tinytorch.inspect.finite import NonFiniteError as NonFiniteError
    from tinytorch.inspect.finite import nonfinite as nonfinite
    from tinytorch.inspect.mistakes import add_notes as add_notes
    from tinytorch.inspect.plots import check_plot as check_plot
    from tinytorch.inspect.plots import plot_classifier as plot_classifier
    from tinytorch.inspect.plots import plot_confusion as plot_confusion
    from tinytorch.inspect.plots import plot_curves as plot_curves
    from tinytorch.inspect.plots import plot_mistakes as plot_mistakes
    from tinytorch.inspect.reproduction import reproducible as reproducible
    from tinytorch.inspect.watching import watch as watch

#: The module of each name.
_WHERE = {
    "Doctor": "doctor", "NonFiniteError": "finite", "check_plot": "plots", "compare": "comparison",
    "draw": "drawing", "explain": "explanation", "nonfinite": "finite", "plot_classifier": "plots",
    "plot_confusion": "plots", "plot_curves": "plots", "plot_mistakes": "plots", "progress": "bars",
    "reproducible": "reproduction", "watch": "watching",
}  # fmt: skip
__all__ = [*_WHERE]
_WHERE["add_notes"] = "mistakes"  # which `core/notes.py` asks for


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'tinytorch.inspect' has no attribute '{name}'")
    found = globals()[name] = getattr(_import_module(f"tinytorch.inspect.{_WHERE[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
