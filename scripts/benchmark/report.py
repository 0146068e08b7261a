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
             "toOneLoop": "CPU for a message, as a ratio"}
    for key, label in names.items():
        if key in result:
            values = "   ".join(f"{name} {number(value)}" for name, value in result[key].items())
            yield f"    {label}: {values}"


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
