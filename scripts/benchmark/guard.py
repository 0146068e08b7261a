"""What a relayed message costs in instructions and allocations: numbers that a busy machine does not change."""

import json
import pathlib
import shutil
import struct
import subprocess
import sys

from load import Load
from processes import Failed
from proxies import Proxy

THRESHOLDS = pathlib.Path(__file__).resolve().parents[2] / "config" / "bench-thresholds.json"
NAMES = {
    "instructions_per_round_trip": "instructions in user space",
    "allocations_per_round_trip": "allocations of the gate's own",
    "openssl_allocations_per_round_trip": "allocations within OpenSSL",
}


def thresholds():
    """The greatest values that pass, for a 64 B message there and back."""
    limits = json.loads(THRESHOLDS.read_text())
    if set(limits) != set(NAMES) or not all(isinstance(limit, (int, float)) for limit in limits.values()):
        raise Failed(f"{THRESHOLDS} has to hold a number each for {', '.join(NAMES)}")
    return limits


def check(bench):
    """Prints each number beside its threshold. 1 if one is beyond it."""
    limits = thresholds()
    measured = dict(zip(NAMES, (_instructions(bench), *_allocations(bench))))
    failed = False
    for name, limit in limits.items():
        value = measured[name]
        verdict = "ok" if value <= limit else "TOO MANY"
        failed = failed or value > limit
        print(f"{NAMES[name]:30} {value:10,.2f} a round trip of 64 B, at most {limit:,}: {verdict}")
    if failed:
        print(f"error: a relayed message costs more than {THRESHOLDS.name} allows", file=sys.stderr)
    return 1 if failed else 0


def _library(bench, name):
    """Compiles one of the small libraries that stand beside this file."""
    compiler = shutil.which("cc") or shutil.which("clang")
    if not compiler:
        raise Failed("there is neither cc nor clang, which --check compiles its counter of allocations with")
    library = bench.folder / f"{name}.so"
    source = pathlib.Path(__file__).with_name(f"{name}.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
    return str(library)


def _allocations(bench, messages=20_000):
    """Allocations of the gate's own and of OpenSSL for each of many messages on an open connection."""
    counts = bench.folder / "counts"
    gate = bench.start(
        "gate", environment={"LD_PRELOAD": _library(bench, "allocations"), "BENCH_COUNTS": str(counts)})
    with Load(gate, "-c", 1, "--messages", messages) as load:
        # The first run warms up whatever there is to warm up.
        load.run()
        before = _read(counts)
        load.run()
        after = _read(counts)
    gate.end()
    openssl, own = ((late - early) / messages for early, late in zip(before, after))
    return own, openssl


def _read(counts):
    return struct.unpack("2Q", counts.read_bytes()[:16])


def _instructions(bench, few=2_000, many=22_000):
    """Instructions for each message: what many messages cost more than few, in two lives of a gate under callgrind."""
    # Valgrind cannot read the debugging information of newer compilers, and does not need it.
    stripped = bench.folder / "sallyport"
    subprocess.run(["strip", "--strip-debug", "-o", stripped, bench.binaries / "sallyport"], check=True)
    preload = _library(bench, "sigsuspend")
    return (_total(bench, stripped, preload, many) - _total(bench, stripped, preload, few)) / (many - few)


def _total(bench, program, preload, messages):
    """Instructions of a gate's whole life."""
    profile = bench.folder / f"callgrind-{messages}"
    gate = bench.start(
        "gate", program=program, environment={"LD_PRELOAD": preload}, patience=120,
        wrapper=["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}"])
    with Load(gate, "-c", 1, "--messages", messages) as load:
        load.run()
    gate.end()
    for line in profile.read_text().splitlines():
        if line.startswith("summary:"):
            return int(line.split()[1])
    raise Failed(f"callgrind wrote no summary:\n{gate.process.last_words()}")
