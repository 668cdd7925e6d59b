"""The report as a page: one self-contained file of HTML with the curves as SVG, light and dark, for any width."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

__all__ = ["page"]

_STYLE = """
:root { color-scheme: light dark; --ground: #fcfcfb; --card: #ffffff; --ink: #1f2328; --soft: #656d76; --line: #d8dee4;
  --curve: #1f6feb; --bad: #b3261e; --maybe: #8a5a00; --good: #1a7f37; --code: #f3f4f6; }
@media (prefers-color-scheme: dark) { :root { --ground: #0d1117; --card: #161b22; --ink: #e6edf3; --soft: #9198a1;
  --line: #30363d; --curve: #58a6ff; --bad: #ff7b72; --maybe: #e3b341; --good: #56d364; --code: #0d1117; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1120px; padding: 20px 16px 48px; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 32px 0 12px; }
p { margin: 6px 0; } .soft { color: var(--soft); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 14px 16px;
  margin: 12px 0; }
.proven { border-left: 4px solid var(--bad); } .suspicion { border-left: 4px solid var(--maybe); }
.healthy { border-left: 4px solid var(--good); }
.kind { font-size: 12px; font-weight: 600; }
.proven .kind { color: var(--bad); } .suspicion .kind { color: var(--maybe); }
.cause { font-weight: 600; font-size: 16px; overflow-wrap: anywhere; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 6px; padding: 8px 10px; margin: 8px 0;
  overflow-x: auto; font: 13px/1.45 ui-monospace, monospace; }
.place { font: 13px ui-monospace, monospace; color: var(--soft); overflow-wrap: anywhere; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); gap: 12px; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 12px; }
figcaption { font-size: 13px; margin-bottom: 6px; overflow-wrap: anywhere; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: left; padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 500; } td.number { font-variant-numeric: tabular-nums; }
td svg { width: 110px; height: 24px; display: inline-block; vertical-align: middle; }
"""


def page(report: dict[str, Any], title: str = "") -> str:
    """Return a report (`Doctor.as_dict()`) as a page of HTML."""
    findings = report["findings"]
    count = f"{len(findings) or 'No'} finding{'s' * (len(findings) != 1)}"
    parts = [
        f"<h1>{count}{' in ' + html.escape(title) if title else ''}</h1>",
        f'<p class="soft">{report["backwards"]} backward passes in {report["seconds"]:.1f} s'
        + (", taken again bit for bit" if report["exact"] else "")
        + "</p>",
    ]
    if report["error"]:
        parts.append(f'<p>The program failed: <span class="place">{html.escape(report["error"])}</span></p>')
    parts += [_finding(each) for each in findings]
    if not findings:
        parts.append('<div class="card healthy">Nothing that the doctor knows keeps this program from learning.</div>')
    parts += [f'<p class="soft">Note: {html.escape(each)}</p>' for each in report["notes"]]
    curves = [_curve(each) for each in report["curves"] if each["losses"]]
    if report["rates"]:
        steps, rates = zip(*report["rates"], strict=True)
        curves.append(_figure("learning rate", steps, rates))
    if curves:
        parts.append(f'<h2>Losses</h2><div class="charts">{"".join(curves)}</div>')
    parts += [_layers(report["layers"]), _activations(report["layers"])]
    name = html.escape(title or "doctor")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}: {count.lower()}</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body></html>\n"
    )


def _finding(each: dict[str, Any]) -> str:
    kind = "proven" if each["proven"] else "suspicion"
    text = [f'<div class="card {kind}"><div class="kind">{kind}</div>',
            f'<div class="cause">{html.escape(each["cause"])}</div>']  # fmt: skip
    if each["file"]:
        text.append(f'<div class="place">{html.escape(each["file"])}:{each["line"]}</div>')
    if each["source"]:
        text.append(f"<pre>{html.escape(each['source'])}</pre>")
    text.append(f"<p>{html.escape(each['text'])}</p>")
    if each["proof"]:
        text.append(f"<p><b>Proof:</b> {html.escape(each['proof'])}</p>")
    text.append(f'<div class="soft">Write instead</div><pre>{html.escape(each["remedy"])}</pre></div>')
    return "".join(text)


def _curve(curve: dict[str, Any]) -> str:
    name = curve["file"].replace("\\", "/").rpartition("/")[2]
    return _figure(f"loss, backward() at {name}:{curve['line']}", curve["steps"], curve["losses"])


def _points(
    steps: Sequence[float], values: Sequence[float | None], width: float, height: float, log: bool, most: int = 400
) -> tuple[str, float, float]:
    """Return the points of a curve within a frame, and the range of its values."""
    pairs = [(step, value) for step, value in zip(steps, values, strict=True)
             if value is not None and math.isfinite(value) and (value > 0 or not log)]  # fmt: skip
    if not pairs:
        return "", math.nan, math.nan
    if len(pairs) > most:  # means of neighbours
        size = -(-len(pairs) // most)
        groups = [pairs[k : k + size] for k in range(0, len(pairs), size)]
        pairs = [(group[0][0], sum(value for _, value in group) / len(group)) for group in groups]
    numbers = [math.log10(value) if log else value for _, value in pairs]
    low, high = min(numbers), max(numbers)
    first, last = pairs[0][0], pairs[-1][0]
    if high == low:  # a line in the middle
        low, high = low - 1, high + 1
    across, up = max(last - first, 1), high - low
    text = " ".join(
        f"{(step - first) / across * width:.1f},{(1 - (number - low) / up) * height:.1f}"
        for (step, _), number in zip(pairs, numbers, strict=True)
    )
    kept = [value for _, value in pairs]
    return text, min(kept), max(kept)


def _figure(name: str, steps: Sequence[float], values: Sequence[float | None]) -> str:
    positive = [value for value in values if value is not None and math.isfinite(value) and value > 0]
    every = [value for value in values if value is not None]
    log = len(positive) == len(every) > 0 and max(positive) > 100 * min(positive)
    points, low, high = _points(steps, values, 300, 120, log)
    labels = (
        f'<text x="-6" y="4" text-anchor="end">{high:.3g}</text><text x="-6" y="124" text-anchor="end">{low:.3g}</text>'
    )
    if low == high:
        labels = f'<text x="-6" y="64" text-anchor="end">{low:.3g}</text>'
    lost = sum(1 for value in values if value is None)
    caption = html.escape(name) + (" (logarithmic)" if log else "")
    if lost:
        caption += f"; {lost} not finite"
    if not points:
        return f'<figure><figcaption>{caption}</figcaption><p class="soft">No finite value.</p></figure>'
    return (
        f"<figure><figcaption>{caption}</figcaption>"
        f'<svg viewBox="0 0 360 160" role="img" aria-label="{caption}: from {high:.4g} to {low:.4g}">'
        '<g transform="translate(50,10)">'
        '<path d="M0 0H300M0 60H300M0 120H300" stroke="var(--line)" fill="none"/>'
        f'<polyline points="{points}" fill="none" stroke="var(--curve)" stroke-width="1.6" stroke-linejoin="round"/>'
        + labels
        + f'<text x="0" y="138">step {steps[0]:.0f}</text>'
        f'<text x="300" y="138" text-anchor="end">{steps[-1]:.0f}</text></g></svg></figure>'
    )


def _spark(steps: Sequence[float], values: Sequence[float | None]) -> str:
    points, _, _ = _points(steps, values, 110, 20, True, 80)
    if " " not in points:
        return ""
    return (
        f'<svg viewBox="0 -2 110 24" aria-hidden="true"><polyline points="{points}" fill="none" stroke="var(--curve)" '
        'stroke-width="1.4"/></svg>'
    )


def _layers(layers: dict[str, Any]) -> str:
    rows = []
    for name, each in layers.items():
        if "gradient" not in each or not each["step"]:
            continue
        ratios = [u / w if w else None for u, w in zip(each["update"], each["weight"], strict=True)]
        last = f"{ratios[-1]:.2g}" if ratios[-1] is not None else ""
        rows.append(
            f"<tr><td>{html.escape(name)}</td><td>{_spark(each['step'], each['gradient'])}</td>"
            f'<td class="number">{each["gradient"][-1]:.2g}</td><td class="number">{each["weight"][-1]:.3g}</td>'
            f'<td>{_spark(each["step"], ratios)}</td><td class="number">{last}</td></tr>'
        )
    if not rows:
        return ""
    return (
        '<h2>Parameters</h2><p class="soft">Norms in the steps that were looked at, on logarithmic scales, and the '
        'last of each. An update of about a thousandth of the weights is usual.</p><div class="scroll"><table><tr>'
        '<th>parameter</th><th colspan="2">gradient</th><th>weights</th><th colspan="2">update / weights</th></tr>'
        f"{''.join(rows)}</table></div>"
    )


def _activations(layers: dict[str, Any]) -> str:
    rows = []
    for name, each in layers.items():
        kind = next((kind for kind in ("dead", "saturated") if kind in each), None)
        if kind is not None and each["step"]:
            rows.append(
                f'<tr><td>{html.escape(name)}</td><td class="number">{each[kind][0]:.0%} {kind} first</td>'
                f'<td class="number">{each[kind][-1]:.0%} at last</td></tr>'
            )
    if not rows:
        return ""
    return f'<h2>Activations</h2><div class="scroll"><table>{"".join(rows)}</table></div>'
