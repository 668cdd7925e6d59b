"""The HTML of explanations in notebooks: self-contained, light or dark as the reader's browser is, narrow or wide."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

#: The colours are variables; all rules begin with the class of the outermost element, so that they change nothing else.
_STYLE = """
.tt-explain{--ink:#1b1f24;--dim:#59636e;--line:#d1d9e0;--back:#fff;--code:#f3f5f7;--good:#1a7f37;--bad:#cf222e;
--mild:#9a6700;color:var(--ink);background:var(--back);font:14px/1.45 system-ui,sans-serif;border:1px solid var(--line);
border-radius:8px;padding:12px 16px;max-width:1100px;box-sizing:border-box;overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){.tt-explain{--ink:#e6edf3;--dim:#9198a1;--line:#3d444d;--back:#0d1117;--code:#1c2128;
--good:#3fb950;--bad:#ff7b72;--mild:#d29922}}
.tt-explain h4{margin:0 0 8px;font-size:15px;color:inherit}
.tt-explain p{margin:4px 0;color:var(--dim)}
.tt-explain code{background:var(--code);color:inherit;border-radius:4px;padding:1px 4px;font:12.5px/1.4 ui-monospace,
Menlo,Consolas,monospace}
.tt-explain table{border-collapse:collapse;width:100%;margin:8px 0;color:inherit;background:none;font-size:inherit}
.tt-explain th,.tt-explain td{text-align:left;vertical-align:top;padding:5px 8px;border-bottom:1px solid var(--line);
background:none;color:inherit}
.tt-explain th{color:var(--dim);font-weight:600}
.tt-explain td:last-child{width:55%}
.tt-explain .good{color:var(--good)}.tt-explain .bad{color:var(--bad);font-weight:600}
.tt-explain .mild{color:var(--mild);font-weight:600}
.tt-explain .scroll{overflow:auto;max-height:520px}
.tt-explain summary{cursor:pointer;margin-top:6px}
@media(max-width:640px){.tt-explain table,.tt-explain tbody,.tt-explain tr,.tt-explain td{display:block;width:auto}
.tt-explain thead{display:none}.tt-explain tr{border-bottom:1px solid var(--line);padding:6px 0}
.tt-explain td{border:0;padding:1px 0}.tt-explain td:last-child{width:auto}.tt-explain td:empty{display:none}
.tt-explain td[data-label]::before{content:attr(data-label) " ";color:var(--dim)}
.tt-explain td:first-child::before,.tt-explain td:last-child::before{content:none!important}
.tt-explain td:not(:first-child):not(:last-child){display:inline-block;margin-right:12px}}
"""
_STYLE = " ".join(_STYLE.split())

#: The class of words for states: what is as it should be, what is not, and what is to be looked at.
_CLASSES = {
    "finite": "good", "trained": "good", "equal": "good", "none": "bad", "not finite": "bad", "forgotten": "bad",
    "foreign": "bad", "different": "bad", "none yet": "mild", "zero": "mild",
    "frozen": "mild",
}  # fmt: skip


def text(value: str) -> str:
    """Return text as HTML."""
    return html.escape(value)


def code(value: str) -> str:
    """Return text as code."""
    return f"<code>{html.escape(value)}</code>"


def mark(value: str) -> str:
    """Return a word for a state, in its colour."""
    return f'<span class="{_CLASSES.get(value, "")}">{html.escape(value)}</span>'


def _with_code(value: str) -> str:
    """Return text as HTML; what is between backquotes, and the source of a line at its end, as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(value, quote=False))


def sentence(value: str, certain: bool = True) -> str:
    """Return a sentence in a cell of a table."""
    return f"<div>{'' if certain else 'probably '}{_with_code(value)}</div>" if value else ""


def paragraph(value: str) -> str:
    """Return a paragraph."""
    return f"<p>{_with_code(value)}</p>"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of cells that are HTML; on narrow screens each row is a block."""
    if not rows:
        return ""
    first = "".join([f"<th>{html.escape(head)}</th>" for head in heads])
    body = []
    for row in rows:
        cells = [
            f'<td data-label="{html.escape(head)}">{cell}</td>' if cell else "<td></td>"
            for head, cell in zip(heads, row, strict=True)
        ]
        body.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{first}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def folded(heading: str, content: str) -> str:
    """Return content that is shown on request."""
    return f"<details><summary>{html.escape(heading)}</summary>{content}</details>"


def page(title: str, parts: Sequence[str]) -> str:
    """Return the HTML of an explanation."""
    return f'<div class="tt-explain"><style>{_STYLE}</style><h4>{html.escape(title)}</h4>{"".join(parts)}</div>'
