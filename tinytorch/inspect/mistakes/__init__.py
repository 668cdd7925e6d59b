"""What notes on errors say: where an error was raised, what it was about, and how to put it right.

`core/notes.py` calls `explain` when an error leaves the package. `stack` finds the frames, `failure` what is known of
the call that failed, `places` where a module was made, and `remedies` has the registry of functions that derive a
remedy. Each other module has the remedies of one kind of mistake. They are imported at the first error.
"""

from tinytorch.inspect.mistakes import arguments, calls, data, graph, layers, losses, masks, members, shapes
from tinytorch.inspect.mistakes.explaining import add_notes

__all__ = ["add_notes", "arguments", "calls", "data", "graph", "layers", "losses", "masks", "members", "shapes"]
