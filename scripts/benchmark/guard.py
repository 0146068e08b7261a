"""Measures the cost of a relayed message, a connection and a request in numbers that hardly depend on machine load."""

import json
import pathlib
import struct
import subprocess
import sys
import time

import costs
from compiler import compiled
from load import Load
from processes import Failed
from proxies import Proxy

THRESHOLDS = pathlib.Path(__file__).resolve().parents[2] / "config" / "bench-thresholds.json"
MESSAGE, CONNECTION = "a round trip of 64 B", "a connection"
NAMES = {
    "instructions_per_round_trip": ("instructions in user space", MESSAGE),
    "allocations_per_round_trip": ("allocations of the gate's own", MESSAGE),
    "openssl_allocations_per_round_trip": ("allocations within OpenSSL", MESSAGE),
    "instructions_per_connection": ("instructions, gate open", CONNECTION),
    "own_instructions_per_connection": ("of them own code", CONNECTION),
    "instructions_per_verified_connection": ("instructions, assertion verified", CONNECTION),
    "own_instructions_per_admission": ("own code and store, by which it is more", CONNECTION),
}
# The gate's program, Swift's libraries and SQLite: all but OpenSSL and the C library, which OpenSSL uses more.
OWN = ("sallyport", "libswift", "libdispatch", "libBlocksRuntime", "libFoundation", "lib_Foundation", "libsqlite3")


def thresholds():
    """Returns the maximum allowed values."""
    limits = json.loads(THRESHOLDS.read_text())
    if set(limits) != set(NAMES) or not all(isinstance(limit, (int, float)) for limit in limits.values()):
        raise Failed(f"{THRESHOLDS} must have a number for each of {', '.join(NAMES)}")
    return limits


def check(bench):
    """Prints each number with its threshold. Returns 1 if any exceeds it."""
    limits = thresholds()
    opened, own = _opened(bench, "gate")
    verified, own_verified = _opened(bench, "gate-verified")
    measured = dict(zip(NAMES, (
        _instructions(bench), *_allocations(bench), opened, own, verified, own_verified - own)))
    failed = False
    for name, limit in limits.items():
        value = measured[name]
        verdict = "ok" if value <= limit else "TOO MANY"
        failed = failed or value > limit
        what, unit = NAMES[name]
        print(f"{what:33} {value:12,.2f} {unit}, at most {limit:,}: {verdict}")
    if failed:
        print(f"error: a message or a connection costs more than {THRESHOLDS.name} allows", file=sys.stderr)
    return 1 if costs.are_too_high(bench) or failed else 0


def _library(bench, name):
    return compiled(bench.folder, name, ".so", "-shared", "-fPIC")


def _allocations(bench, messages=20_000):
    """Returns the gate's and OpenSSL's allocations per message on open connections.

    Subtracts what the gate allocates each second without messages: on a slow machine a message takes longer.
    """
    counts = bench.folder / "counts"
    gate = bench.start(
        "gate", environment={"LD_PRELOAD": _library(bench, "allocations"), "BENCH_COUNTS": str(counts)})
    with Load(gate, "-c", 1, "--messages", messages) as load:
        # The first run is a warm-up.
        load.run()
        (idle, idle_time), (busy, busy_time) = _counted(counts, lambda: time.sleep(5)), _counted(counts, load.run)
    gate.end()
    openssl, own = ((of_all - of_none * busy_time / idle_time) / messages for of_all, of_none in zip(busy, idle))
    return own, openssl


def _counted(counts, work):
    """Returns the allocations during `work`, and its duration in seconds."""
    before, began = _read(counts), time.monotonic()
    work()
    return [late - early for early, late in zip(before, _read(counts))], time.monotonic() - began


def _read(counts):
    return struct.unpack("2Q", counts.read_bytes()[:16])


def _instructions(bench, few=2_000, many=22_000):
    """Returns the instructions per message, from two runs of a gate under callgrind with many and with few messages."""
    (less, _, _), (more, _, _) = (_life(bench, "gate", "-c", 1, "--messages", count) for count in (few, many))
    return (more - less) / (many - few)


def _opened(bench, name, short=2, long=8):
    """Returns the instructions to open, upgrade and close a connection, measured in the same way, and those of `OWN`.

    After the shorter load, the gate is idle until both took the same time. So the difference has nothing of what the
    gate does each second. Varies by a few percent: under load, some threads sleep less often, and admissions share
    commits.
    """
    (less, few_own, few), (more, many_own, many) = (
        _life(bench, name, "--connect", "-c", 8, "-d", f"{seconds}s", idle=long - seconds) for seconds in (short, long))
    if many <= few:
        raise Failed(f"{name} opened no more connections in {long} s than in {short} s")
    return (more - less) / (many - few), (many_own - few_own) / (many - few)


def _life(bench, name, *load, idle=0):
    """Runs a gate under the load, then for `idle` seconds without.

    Returns its total instructions, those of `OWN`, and the amount of work done.
    """
    # Valgrind cannot read the debugging information of newer compilers, and does not need it.
    stripped = bench.folder / "sallyport"
    subprocess.run(["strip", "--strip-debug", "-o", stripped, bench.binaries / "sallyport"], check=True)
    profile = bench.folder / "callgrind"
    gate = bench.start(
        name, program=stripped, environment={"LD_PRELOAD": _library(bench, "sigsuspend")}, patience=120,
        wrapper=["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}"])
    with Load(gate, *load) as running:
        report = running.run()
    time.sleep(idle)
    gate.end()
    total, own = costs.profiled(profile, OWN)
    if total is None:
        raise Failed(f"callgrind wrote no summary:\n{gate.process.last_words()}")
    return total, own, report["count"]
