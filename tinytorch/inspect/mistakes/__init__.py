"""What notes on errors say: where an error was raised, what it was about, and how to put it right.

`core/notes.py` calls `explain` when an error leaves the package. `stack` finds the frames, `failure` what is known of
the call that failed, `places` where a module was made. A remedy comes from `rows`, a table of messages and of code, or
is found by `trying` edits of the code, behind which `running` goes on. `graph` says what cut the graph. They are
imported at the first error.
"""

from tinytorch.inspect.mistakes import graph, rows
from tinytorch.inspect.mistakes.explaining import add_notes

__all__ = ["add_notes", "graph", "rows"]
