"""What contests found, as text and as HTML: a row for every kernel, with why it lost. The rows of ``hone tune``, out of the document of a result."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Any

from hone import _logging

_HEAD = (" ", "kernel", "config", "time", "spread", "tried", "rejected")
_MOST_WORDS = 100  # characters of a reason in the table
_LEAST_SAMPLES = 10  # samples on both sides of a ratio; the same as in the command
_BAR = 160  # pixels
Row = tuple[str, ...]


def time_text(ns: float | None) -> str:
    if not ns or ns <= 0:
        return "-"
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= size:
            return f"{ns / size:.2f} {unit}"
    return f"{ns:.1f} ns"


def config_text(config: dict[str, Any] | None) -> str:
    return " ".join(f"{name}={value}" for name, value in (config or {}).items())


def _competed(kernel: dict[str, Any]) -> bool:
    return bool(kernel.get("time_ns") or kernel.get("tried"))


def _reason(kernel: dict[str, Any]) -> str:
    words = _logging.plain(str(kernel.get("reason") or ""))
    return words if len(words) <= _MOST_WORDS else words[: _MOST_WORDS - 3] + "..."


def _spread(kernel: dict[str, Any]) -> str:
    if not kernel.get("time_ns"):
        return ""
    if kernel.get("samples", 0) <= 1:
        return "-"
    return f"{50 * (kernel['high_ns'] - kernel['low_ns']) / kernel['time_ns']:.1f} %"


def _rejected(kernel: dict[str, Any]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in kernel.get("rejected", {}).items())


def _row(kernel: dict[str, Any], chosen: str) -> Row:
    config = config_text(kernel.get("config")) if kernel.get("time_ns") else _reason(kernel) or "not measured"
    return ("*" if kernel["kernel"] == chosen else " ", kernel["kernel"], config, time_text(kernel.get("time_ns")), _spread(kernel),
            str(kernel.get("tried", 0)), _rejected(kernel))


def _rows(entry: dict[str, Any]) -> list[Row]:
    """The kernels that were tried."""
    kernels = entry["evidence"].get("kernels", ())
    return [_row(kernel, entry["kernel"]) for kernel in kernels if _competed(kernel)]


def _absent(kernels: list[dict[str, Any]]) -> Iterator[str]:
    """The others, each reason once."""
    elsewhere = sum(bool(kernel.get("elsewhere")) for kernel in kernels)
    reasons: dict[str, list[str]] = {}
    for kernel in kernels:
        if not _competed(kernel) and not kernel.get("elsewhere"):
            reasons.setdefault(_logging.plain(str(kernel.get("reason") or "")), []).append(kernel["kernel"])
    for reason, names in reasons.items():
        if reason:
            yield f"not competing: {', '.join(names)}: {reason}"
        else:
            yield f"never tried: {', '.join(names)}: the time or the evaluations were spent before its turn"
    if elsewhere:
        yield f"{elsewhere} kernel{' is' if elsewhere == 1 else 's are'} for other devices or calls, or need{'s' * (elsewhere == 1)} what is not installed"


def _lost(kernels: list[dict[str, Any]]) -> Iterator[str]:
    """Why configs were rejected, of kernels that have a time, and what did not fit into the table."""
    for kernel in kernels:
        words = _logging.plain(str(kernel.get("reason") or ""))
        if kernel.get("rejected") and words and (kernel.get("time_ns") or len(words) > _MOST_WORDS):
            yield f"rejected of {kernel['kernel']}: {words}"


def _gains(entry: dict[str, Any]) -> str:
    evidence, chosen = entry["evidence"], entry["kernel"]
    second, text = evidence.get("runner_up", ""), f"chosen {chosen}"
    if second:
        name = "its next config" if second == chosen else second
        if evidence.get("rounds", 0) >= _LEAST_SAMPLES:
            text += f": {evidence['ratio']:.2f} times as fast as {name} (95 % {evidence['ratio_low']:.2f} to {evidence['ratio_high']:.2f})"
        else:
            text += f"; too few samples ({evidence.get('rounds', 0):.0f}) to compare with {name}"
    default_ns, own_ns = evidence.get("default_time_ns") or 0, evidence.get("time_ns") or 0
    samples = min(evidence.get("samples", 0), evidence.get("default_samples") or _LEAST_SAMPLES)  # earlier versions do not store default_samples
    if default_ns > 0 and default_ns == own_ns:
        text += "; it is the default"
    elif default_ns > 0 and own_ns > 0:
        text += f", {default_ns / own_ns:.2f} times as fast as the default" if samples >= _LEAST_SAMPLES else (
            f"; too few samples ({samples:.0f}) to compare with the default")
    if evidence.get("verified_against"):
        text += f"; verified against {evidence['verified_against']}, error {evidence.get('max_error', 0):.2g} of what is allowed"
    return text


def _notes(entry: dict[str, Any]) -> Iterator[str]:
    """What stands below the table of a contest."""
    evidence = entry["evidence"]
    kernels = evidence.get("kernels", [])
    yield from _absent(kernels)
    yield from _lost(kernels)
    yield _gains(entry)
    if evidence.get("regime", "warm") != "warm":
        yield f"regime {evidence['regime']}"
    rejected = sum(count for kernel in kernels for count in kernel.get("rejected", {}).values())
    yield f"{evidence.get('measured', 0)} measured, {rejected} rejected, {evidence.get('seconds', 0):.1f} s"
    if evidence.get("undecided"):
        yield f"undecided: {evidence['undecided']}"


def _decided(entry: dict[str, Any]) -> str:
    """Of an entry whose contest was another's."""
    evidence, config = entry["evidence"], config_text(entry.get("config"))
    parts = [f"decided already ({entry.get('source', '')}): {entry['kernel']}{' ' * bool(config)}{config}"]
    if evidence.get("time_ns"):
        parts.append(time_text(evidence["time_ns"]))
    if evidence.get("started"):
        parts.append(f"measured {evidence['started']}")
    return ", ".join(parts)


def _failures(document: dict[str, Any]) -> Iterator[str]:
    for row in document.get("failed", []):
        yield f"not tuned: {row.get('call') or row.get('text') or ''}: {_logging.plain(str(row.get('reason', '')))}"


def _complete(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "evidence": entry.get("evidence") or {}}


# Text -----------------------------------------------------------------------------------------------------------------


def aligned(rows: Sequence[Row], right: frozenset[int] = frozenset()) -> list[str]:
    """Rows with columns as wide as their widest cell.

    Args:
        right: columns of numbers.
    """
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(text.rjust(width) if i in right else text.ljust(width) for i, (text, width) in enumerate(zip(row, widths))).rstrip() for row in rows]


def _filled(rows: list[Row]) -> list[Row]:
    """Without the last column where nothing was rejected."""
    return rows if any(row[-1] for row in rows[1:]) else [row[:-1] for row in rows]


def text(document: dict[str, Any]) -> str:
    """Of the document of a result."""
    lines: list[str] = []
    for entry in map(_complete, document.get("entries", [])):
        lines.append(str(entry.get("call") or f"{entry['algorithm']} {entry['key']}"))
        rows = _rows(entry)
        if not rows:
            lines.append(f"  {_decided(entry)}")
            continue
        table = aligned(_filled([_HEAD, *rows]), frozenset((3, 4, 5)))
        lines += [line[0] + line[2:] for line in table]  # one space after the mark
        lines += [f"  {note}" for note in _notes(entry)]
    return "\n".join([*lines, *_failures(document)])


# HTML -----------------------------------------------------------------------------------------------------------------


def _bar(kernel: dict[str, Any], best_ns: float, chosen: str) -> str:
    """How fast a kernel is beside the fastest, drawn without a script."""
    if not kernel.get("time_ns"):
        return ""
    share = best_ns / kernel["time_ns"]
    colour = "#2a7ae2" if kernel["kernel"] == chosen else "#9aa5b1"
    return (f'<svg width="{_BAR}" height="12" role="img" aria-label="{share:.2f} of the fastest\'s speed"><rect width="{max(1.0, _BAR * share):.0f}" '
            f'height="12" fill="{colour}"/></svg>')


def _line(cells: Row, bar: str, tag: str) -> str:
    return "<tr>" + "".join(f"<{tag} style=\"text-align:left\">{html.escape(cell)}</{tag}>" for cell in cells) + f"<{tag}>{bar}</{tag}></tr>"


def page(document: dict[str, Any]) -> str:
    """A table for each contest, with bars of speed: it needs neither scripts nor styles of a page."""
    parts: list[str] = []
    for entry in map(_complete, document.get("entries", [])):
        kernels = [kernel for kernel in entry["evidence"].get("kernels", []) if _competed(kernel)]
        parts.append(f"<p><code>{html.escape(str(entry.get('call') or entry['algorithm']))}</code></p>")
        if not kernels:
            parts.append(f"<p>{html.escape(_decided(entry))}</p>")
            continue
        best_ns = min((kernel["time_ns"] for kernel in kernels if kernel.get("time_ns")), default=0.0)
        lines = [_line(row, _bar(kernel, best_ns, entry["kernel"]), "td") for row, kernel in zip(_rows(entry), kernels)]
        parts.append("<table>" + _line(_HEAD, "speed", "th") + "".join(lines) + "</table>")
        parts.append("<p>" + "<br>".join(html.escape(note) for note in _notes(entry)) + "</p>")
    parts += [f"<p>{html.escape(line)}</p>" for line in _failures(document)]
    return "".join(parts)
