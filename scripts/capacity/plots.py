"""Plots of the model as SVG, readable on light and on dark ground."""

import dataclasses
import math

from model import predictions

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 380, 70, 190, 44, 52
STYLE = """\
<style>
svg { --ink: #24292f; --faint: #d0d7de; --ground: #ffffff;
  --c0: #0a58a6; --c1: #b4430d; --c2: #23734a; --c3: #7b3fa0; --c4: #6d6100; }
@media (prefers-color-scheme: dark) {
  svg { --ink: #e6edf3; --faint: #3d444d; --ground: #0d1117;
    --c0: #6cb6ff; --c1: #ff9b6a; --c2: #6ed49a; --c3: #d2a8ff; --c4: #e3d26f; }
}
text { fill: var(--ink); }
</style>"""
DASHES = ("", "8 4", "2 3", "10 3 2 3", "5 5")


@dataclasses.dataclass
class Axis:
    title: str
    low: float
    high: float
    ticks: list  # of (value, text)
    is_log: bool = False

    def at(self, value):
        """Returns the place of a value, from 0 to 1."""
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


class Plot:
    def __init__(self, title, x, y):
        self.x, self.y = x, y
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'font-family="sans-serif" font-size="13" role="img" aria-label="{title}">', STYLE,
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="var(--ground)"/>',
            f'<text x="{LEFT}" y="22" font-weight="bold">{title}</text>']
        for value, text in x.ticks:
            place = self.across(value)
            self.parts.append(f'<path d="M{place} {TOP}V{HEIGHT - BOTTOM}" stroke="var(--faint)"/>')
            self.text(place, HEIGHT - BOTTOM + 17, text, "middle")
        for value, text in y.ticks:
            place = self.down(value)
            self.parts.append(f'<path d="M{LEFT} {place}H{WIDTH - RIGHT}" stroke="var(--faint)"/>')
            self.text(LEFT - 6, place + 4, text, "end")
        self.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x.title, "middle")
        self.text(LEFT, TOP - 6, y.title)

    def across(self, value):
        return round(LEFT + self.x.at(value) * (WIDTH - RIGHT - LEFT), 1)

    def down(self, value):
        return round(HEIGHT - BOTTOM - self.y.at(value) * (HEIGHT - BOTTOM - TOP), 1)

    def text(self, x, y, text, anchor="start", color=None):
        style = f' style="fill: var(--c{color})"' if color is not None else ""
        self.parts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}"{style}>{text}</text>')

    def lines(self, series):
        """Draws lines of (name, points). Each name is next to the end of its line, apart from the others."""
        ends = []
        for number, (name, points) in enumerate(series):
            inside = [(x, min(max(y, self.y.low), self.y.high)) for x, y in points]
            # A line ends where it leaves the plot.
            last = next((index for index, (_, y) in enumerate(points) if y > self.y.high), len(points) - 1)
            path = "L".join(f"{self.across(x)} {self.down(y)}" for x, y in inside[:last + 1])
            self.parts.append(f'<path d="M{path}" fill="none" stroke="var(--c{number})" stroke-width="2.5" '
                              f'stroke-dasharray="{DASHES[number]}"/>')
            ends.append([self.down(inside[last][1]), self.across(inside[last][0]), name, number])
        previous = -math.inf
        for y, _, name, number in sorted(ends):
            previous = max(y + 4, previous + 16)
            self.parts.append(f'<path d="M{WIDTH - RIGHT + 6} {previous - 4}h16" stroke="var(--c{number})" '
                              f'stroke-width="2.5" stroke-dasharray="{DASHES[number]}"/>')
            self.text(WIDTH - RIGHT + 26, previous, name, color=number)

    def level(self, value, text):
        place = self.down(value)
        self.parts.append(f'<path d="M{LEFT} {place}H{WIDTH - RIGHT}" stroke="var(--ink)" stroke-dasharray="3 3"/>')
        self.text(LEFT + 6, place - 5, text)

    def finish(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


def steps(low, high, count=60):
    return [low * (high / low) ** (index / count) for index in range(count + 1)]


def devices_axis():
    ticks = [(1e6, "1 M"), (3e6, "3 M"), (10e6, "10 M"), (30e6, "30 M"), (100e6, "100 M")]
    return Axis("devices of one database", 1e6, 100e6, ticks, True)


def saturation(model, load):
    """How much of each part of one database the peak uses, by the number of devices."""
    plot = Plot("How much of one database the busiest second uses", devices_axis(),
                Axis("share", 0, 1, [(share / 10, f"{share * 10} %") for share in range(0, 11, 2)]))
    names = {"CPU of the database": "CPU", "log of the database": "log (WAL)",
             "reads of the database's disk": "reads of the disk",
             "connection for registrations of a gate": "registrations of a gate", "removal of nonces": "removal of nonces"}
    series = {name: [] for name in names}
    for devices in steps(1e6, 100e6):
        scaled = load.scaled(devices / load.devices)
        uses = model.uses(scaled, model.plan(scaled))
        for name in names:
            series[name].append((devices, uses[name]))
    plot.lines([(names[name], points) for name, points in series.items()])
    plot.level(load.utilization, f"{load.utilization:.0%}: the most that is planned")
    return plot.finish()


def log(model, load):
    """Bytes of log for each admission in the mean, by the time between checkpoints."""
    series = []
    for times in (1, 8, 40):
        points = []
        for minutes in steps(1, 60):
            rarely = dataclasses.replace(load, checkpoint_minutes=minutes, admissions_per_day=times * load.devices)
            points.append((minutes, model.plan(rarely)["wal_admission"] / 1000))
        series.append((f"{times} a day", points))
    top = math.ceil(max(value for _, points in series for _, value in points) / 2) * 2
    plot = Plot("Bytes of log for each admission, by the admissions of a device",
                Axis("minutes between checkpoints", 1, 60, [(value, str(value)) for value in (1, 2, 5, 15, 30, 60)],
                     True),
                Axis("kB", 0, top, [(value, str(value)) for value in range(0, top + 1, 2)]))
    plot.lines(series)
    return plot.finish()


def runs(model, measured):
    """Predicted and measured CPU time of an admission, for each run."""
    found = list(predictions(model, measured))
    amounts = [value for _, parts in found for name in ("gate CPU", "PostgreSQL CPU") for value in parts[name]]
    top = math.ceil(max(amounts) * 1.2 / 200) * 200
    ticks = [(index + 0.5, f"{run['gates']} / {run['connections']}") for index, (run, _) in enumerate(found)]
    plot = Plot("CPU time of an admission: measured, and predicted within 20 %",
                Axis("gate processes / devices at a time", 0, len(found), ticks),
                Axis("us", 0, top, [(value, f"{value:,}") for value in range(0, top + 1, 200)]))
    for number, name in enumerate(("gate CPU", "PostgreSQL CPU")):
        for index, (_, parts) in enumerate(found):
            predicted, real = parts[name]
            x = plot.across(index + 0.4 + 0.2 * number)
            plot.parts.append(f'<path d="M{x} {plot.down(predicted * 0.8)}V{plot.down(predicted * 1.2)}" '
                              f'stroke="var(--c{number})" stroke-width="10" stroke-opacity="0.35"/>')
            plot.parts.append(f'<circle cx="{x}" cy="{plot.down(real)}" r="4" fill="var(--c{number})"/>')
        y = TOP + 20 + 44 * number
        plot.text(WIDTH - RIGHT + 12, y, name.replace(" CPU", ""), color=number)
        plot.parts.append(f'<circle cx="{WIDTH - RIGHT + 20}" cy="{y + 13}" r="4" fill="var(--c{number})"/>')
        plot.text(WIDTH - RIGHT + 32, y + 17, "measured")
        plot.parts.append(f'<path d="M{WIDTH - RIGHT + 112} {y + 4}v18" stroke="var(--c{number})" '
                          f'stroke-width="10" stroke-opacity="0.35"/>')
        plot.text(WIDTH - RIGHT + 122, y + 17, "model")
    return plot.finish()


def drawn(model, load, measured):
    """Returns the text of each file by its name."""
    return {"fleet-saturation.svg": saturation(model, load), "fleet-log.svg": log(model, load),
            "fleet-runs.svg": runs(model, measured)}
