"""Formats the results as a table and as JSON."""

import datetime
import json
import os
import platform

HEADINGS = ("", "unit", "nginx", "HAProxy", "gate", "to nginx", "to HAProxy", "target", "")


def number(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def verdict(result):
    """Returns whether the target was reached, or an empty text without a target."""
    target = result["target"]
    if target is None:
        return ""
    reached = (result["medians"]["gate"] if result.get("is_absolute") else result["to_nginx"]) <= target
    theirs = result.get("to_haproxy")
    return ("met" if reached else "missed") + ("" if theirs is None or theirs < 1 else ", above HAProxy")


def row(result):
    medians = result["medians"]
    return (
        result["title"], result["unit"], *(number(medians.get(name)) for name in ("nginx", "haproxy", "gate")),
        number(result.get("to_nginx")), number(result.get("to_haproxy")), number(result["target"]), verdict(result))


def table(results):
    rows = [HEADINGS, *(row(result) for result in results)]
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(HEADINGS))]
    lines = []
    for cells in rows:
        parts = [cells[0].ljust(widths[0]), cells[1].ljust(widths[1])]
        parts += [cell.rjust(width) for cell, width in zip(cells[2:8], widths[2:8])]
        lines.append("  ".join([*parts, cells[8]]).rstrip())
        lines += details(next((r for r in results if r["title"] == cells[0]), {}))
    return "\n".join(lines)


def details(result):
    """Yields more lines of a scenario, in addition to the figure in the table."""
    names = {"p50": "p50 us", "p999": "p99.9 us", "perSecond": "a second", "alone": "of that, without any server",
             "perCore": "a second of one core", "commit": "in one commit",
             "toOneLoop": "CPU, as a ratio"}
    for key, label in names.items():
        if key in result:
            values = "   ".join(f"{name} {number(value)}" for name, value in result[key].items())
            yield f"    {label}: {values}"


def plot(results):
    """Returns a bar chart of the ratios to nginx as SVG, with a mark at each target."""
    shown = [result for result in results if result.get("to_nginx") is not None and not result.get("is_absolute")]
    left, scale, step, top = 360, 220, 26, 30
    width, height = left + round(scale * 2.4), top + step * len(shown) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="13" role="img" aria-label="CPU of the gate, as a ratio to nginx">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{left}" y="18" fill="#555">as a ratio to nginx; | is the goal</text>',
    ]
    x, bottom = left + scale, top + step * len(shown)
    parts += [
        f'<path d="M{x} {top}V{bottom}" stroke="#888" stroke-dasharray="3 3"/>',
        f'<text x="{x}" y="{bottom + 16}" text-anchor="middle" fill="#555">nginx</text>',
    ]
    for index, result in enumerate(shown):
        y, ratio, goal = top + step * index, result["to_nginx"], result["target"]
        bar = round(scale * min(ratio, 2.2))
        mark = round(scale * goal) if goal is not None else 0
        color = "#2e6e5e" if goal is None or ratio <= goal else "#a83b28"
        title = result["title"].replace("&", "&amp;").replace("<", "&lt;")
        parts += [
            f'<text x="{left - 8}" y="{y + 15}" text-anchor="end" fill="#222">{title}</text>',
            f'<rect x="{left}" y="{y + 3}" width="{bar}" height="{step - 10}" fill="{color}"/>',
            f'<text x="{left + max(bar, mark) + 6}" y="{y + 15}" fill="#222" stroke="#fff" stroke-width="4" '
            f'paint-order="stroke">{ratio:.2f}</text>',
        ]
        if goal is not None:
            parts.append(f'<path d="M{left + mark} {y}v{step - 4}" stroke="#111" stroke-width="2"/>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def machine():
    model = "unknown"
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release()}


def document(results, versions, rounds):
    return json.dumps(
        {
            "at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "machine": machine(), "versions": versions, "rounds": rounds, "scenarios": results,
        }, indent=2)
