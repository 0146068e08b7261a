"""scripts/fleet --check: the model against measured runs, the sources of the gate, itself, and the article."""

import dataclasses
import math
import pathlib
import re

import model as fleet
import plots
import sentences

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCUMENTS = ROOT / "Sources/Gate/GateService/GateService.docc"
GREATEST_ERROR = 0.2
# Runs of the present scripts/fleet.json that the model misses: the article names them. Empty after a better measurement.
MISSED = {(2, 64, "log"), (4, 64, "PostgreSQL CPU")}
# The constants that the model repeats from the sources.
SOURCES = [
    ("Sources/Gate/PostgresStore/PostgresStore.swift", r"var admissionLanes = (\d+)", fleet.LANES),
    ("Sources/Gate/PostgresStore/PostgresStore.swift", r"var mostAtOnce = (\d+)", fleet.MOST_AT_ONCE),
    ("Sources/Gate/AttestGate/Challenges.swift", r"skew: Duration = \.seconds\((\d+)\)", fleet.SKEW),
    ("Sources/Gate/GateRuntime/MaintenanceService.swift", r"Rest\.about\(\.seconds\((\d+)\)\)", fleet.MAINTENANCE),
    ("config/systemd/sallyport.service", r"LimitNOFILE=(\d+)", fleet.DESCRIPTORS),
]


class Checks:
    def __init__(self, document, model):
        self.document, self.model, self.failed = document, model, 0

    def expect(self, holds, text):
        if not holds:
            self.failed += 1
        print(f"{'ok' if holds else 'WRONG'}: {text}")

    def run(self):
        self.constants()
        self.sources()
        self.runs()
        self.laws()
        self.documents()
        return self.failed

    def constants(self):
        for name, entry in self.document["constants"].items():
            value = entry.get("value")
            if not (isinstance(value, (int, float)) and math.isfinite(value) and value > 0 and entry.get("unit")
                    and entry.get("measured")):
                self.expect(False, f"{name} has a positive value, a unit, and how it was measured")
        self.expect(len(self.document["constants"]) > 20, f"{len(self.document['constants'])} constants")

    def sources(self):
        for path, pattern, expected in SOURCES:
            match = re.search(pattern, (ROOT / path).read_text())
            self.expect(match and int(match[1]) == expected, f"{path} has {expected} for {pattern}")

    def runs(self):
        seen = set()
        for run, parts in fleet.predictions(self.model, self.document["runs"]):
            seen.add(run["gates"])
            for name in ("gate CPU", "PostgreSQL CPU", "log"):
                predicted, measured = parts[name]
                error = predicted / measured - 1
                is_missed = (run["gates"], run["connections"], name) in MISSED
                self.expect(abs(error) <= GREATEST_ERROR or is_missed and abs(error) < 0.4,
                            f"{run['gates']} gates, {run['connections']} devices at a time: {name} of an admission is "
                            f"{predicted:.0f} by the model and {measured:.0f} measured ({error * 100:+.1f} %)"
                            + (", a known miss" if is_missed else ""))
        self.expect(seen >= {1, 2, 4}, "there are runs of 1, 2 and 4 gates")
        filled = [run for run in self.document["runs"] if "pages" in run]
        for run in filled:
            predicted = fleet.distinct(run["pages"], run["uses"])
            error = predicted / run["images"] - 1
            self.expect(abs(error) <= GREATEST_ERROR,
                        f"{run['keys']:,} keys, {run['uses']:,} admissions after a checkpoint: {predicted:,.0f} page images "
                        f"by the model and {run['images']:,} measured ({error * 100:+.1f} %)")
        self.expect(filled, "there is a run of many keys")

    def laws(self):
        load, model = fleet.Load(), self.model
        plan = model.plan(load)
        double = model.plan(dataclasses.replace(load, devices=load.devices * 2))
        self.expect(math.isclose(double["db_bytes"], 2 * plan["db_bytes"]), "twice the devices take twice the space")
        halves = model.plan(dataclasses.replace(load, databases=2))
        self.expect(math.isclose(halves["db_bytes"], plan["db_bytes"] / 2), "two databases have half of the space each")
        self.expect(plan["wal_day"] > halves["wal_day"] > plan["wal_day"] / 3,
                    "two databases write about half of the log each")
        more = model.plan(dataclasses.replace(load, sockets=load.sockets * 3))
        self.expect(more["gates"] > plan["gates"], "three times the sockets need more gates")
        rare = model.plan(dataclasses.replace(load, checkpoint_minutes=60))
        self.expect(rare["wal_admission"] < plan["wal_admission"], "rarer checkpoints write less log")
        factor, first = model.limit(load)
        scaled = load.scaled(factor)
        use = model.uses(scaled, model.plan(scaled))[first]
        self.expect(abs(use - load.utilization) < 0.01, f"at {factor:.3g} times the fleet {first} is at {use:.1%}")
        for rate, cycle in ((10.0, 0.001), (500.0, 0.004), (2000.0, 0.05)):
            found = fleet.cycle_of(rate, fleet.batch(rate, cycle))
            self.expect(abs(found / cycle - 1) < 0.01 or fleet.batch(rate, cycle) < 1.001,
                        f"the batch at {rate:.0f} admissions/s and {cycle * 1000:.0f} ms gives {found * 1000:.3g} ms")
        self.expect(fleet.batch(1e6, 1.0) == fleet.MOST_AT_ONCE and fleet.batch(0.0, 1.0) == 1.0,
                    "a transaction has between 1 and 256 admissions")
        numbers = [value for value in plan.values() if isinstance(value, float)]
        self.expect(all(math.isfinite(value) and value >= 0 for value in numbers), "no figure is negative or infinite")

    def documents(self):
        for path, text in documents(self.document, self.model).items():
            self.expect(path.exists() and path.read_text() == text, f"{path.relative_to(ROOT)} is what --write writes")


def documents(document, model):
    """Returns the text of the article, with the generated blocks in it, and of each plot, by their paths."""
    path = DOCUMENTS / "Fleet.md"
    article = path.read_text()
    for name, text in blocks(document, model).items():
        pattern = re.compile(rf"(<!-- scripts/fleet --write: {name} -->\n).*?(<!-- end of scripts/fleet -->\n)", re.DOTALL)
        if not pattern.search(article):
            raise ValueError(f"{path} has no block {name}")
        article = pattern.sub(lambda match: f"{match[1]}\n{text}\n{match[2]}", article)
    drawn = plots.drawn(model, fleet.Load(), document["runs"])
    return {path: article, **{DOCUMENTS / "Resources" / name: text for name, text in drawn.items()}}


def blocks(document, model):
    filled = next(run for run in document["runs"] if "pages" in run)
    machine = document["machine"]
    return {
        "fleet": sentences.markdown(model, fleet.Load()),
        "runs": sentences.runs_markdown(list(fleet.predictions(model, document["runs"]))),
        "machine": f"Measured on {document['date']}: {machine['cores']} cores of a shared {machine['cpu']}, "
                   f"Linux {machine['kernel']}.\n",
        "images": f"With {filled['keys']:,} keys on {filled['pages']:,} pages, {filled['uses']:,} random admissions after "
                  f"a checkpoint\nwrote {filled['images']:,} images of pages of keys; the model says "
                  f"{fleet.distinct(filled['pages'], filled['uses']):,.0f}.\n",
        "constants": sentences.constants_markdown(document),
    }
