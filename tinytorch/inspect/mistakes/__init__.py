"""What notes on errors say: where an error was raised, what it was about, and how to put it right.

`core/notes.py` calls `add_notes` when an error leaves the package; all of this is imported at the first error.

| module | contents |
|---|---|
| `explaining` | the notes, and the end of the traceback at the user's line |
| `stack`, `failure`, `places` | the frames; what is known of the call that failed; where a module was made |
| `remedies`, `rows` | remedies for a message: **a new one is a row** of `TEMPLATES`, or a function with its messages |
| `edits`, `layers` | the changes that are tried where no row says anything: **a new one is a `yield` there** |
| `arrays` | functions of NumPy and of other libraries: torch's functions in their place, found by comparing results |
| `trying`, `running`, `trial` | the search for the smallest change that works, on copies; no code of the user's runs |
| `graph` | what is said of the graph; **what cuts it** is the table of `inspect.why` |

**To keep a remedy from being shown**: a function of `rows` that returns None leaves the error to the search, in which
an edit is guarded at its `yield`, or by how it fits what follows (`trying.Site.fit`); `edits._NOT_AGAIN` names the
functions, and `edits._NO_EDITS` the messages, of which nothing is tried. Each remedy has a program in
`tests/inspect/mistakes.txt`.
"""

from tinytorch.inspect.mistakes import graph, rows
from tinytorch.inspect.mistakes.explaining import add_notes

__all__ = ["add_notes", "graph", "rows"]
