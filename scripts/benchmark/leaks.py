"""scripts/bench --leaks: what a gate keeps of many connections that came and went."""

import os
import sys

from load import Load
from processes import Failed

# Bytes, behind a first tenth in which buffers grow: some 20 and 60 for each of 100,000 connections. A gate that admits has a store, whose page cache may still grow (to 32 MiB) beside it.
BOUNDS = {"gate": 2 << 20, "gate-verified": 6 << 20}


def check(bench, connections):
    """Prints a line for a gate that is open to everyone and one that admits. 1 if one keeps memory or descriptors."""
    failed = False
    for name, bound in BOUNDS.items():
        gate = bench.start(name)
        with Load(gate, "--connect", "-c", 8, "-d", "5s") as load:
            warm = _open(load, connections // 10)
            before, files = gate.settled_memory(), _descriptors(gate)
            count = _open(load, connections)
            kept, more = gate.settled_memory() - before, _descriptors(gate) - files
        gate.end()
        is_sound = kept <= bound and more <= 0
        failed = failed or not is_sound
        print(f"{name:14} {count:9,} connections behind {warm:,}: {kept / 1024:+,.0f} KiB, at most {bound >> 10:,}; "
              f"{more:+} descriptors, at most 0: {'ok' if is_sound else 'TOO MANY'}", flush=True)
    if failed:
        print("error: a gate keeps something of connections that are closed", file=sys.stderr)
    return 1 if failed else 0


def _open(load, least):
    """Opens and closes connections until there were `least`; how many there were."""
    count = 0
    while count < least:
        opened = load.run()["count"]
        if opened == 0:
            raise Failed(f"{load.proxy.name} opens no connections")
        count += opened
    return count


def _descriptors(gate):
    return len(os.listdir(f"/proc/{gate.process.pid}/fd"))
