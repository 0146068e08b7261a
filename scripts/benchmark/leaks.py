"""scripts/bench --leaks: memory that a gate keeps after many connections have closed."""

import os
import sys

from load import Load
from processes import Failed

# The allowed growth in bytes after the first tenth of the connections, in which buffers grow: about 20 and 60 bytes
# for each of 100,000 connections. The page cache of the store, which only `gate-verified` uses, may grow to 32 MiB.
BOUNDS = {"gate": 2 << 20, "gate-verified": 6 << 20}


def check(bench, connections):
    """Checks a gate without enforcement and one with it. Returns 1 if either keeps memory or descriptors."""
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
        print(f"{name:14} {count:9,} connections after {warm:,}: {kept / 1024:+,.0f} KiB, at most {bound >> 10:,}; "
              f"{more:+} descriptors, at most 0: {'ok' if is_sound else 'TOO MANY'}", flush=True)
    if failed:
        print("error: a gate keeps memory or descriptors of closed connections", file=sys.stderr)
    return 1 if failed else 0


def _open(load, least):
    """Opens and closes at least `least` connections. Returns their number."""
    count = 0
    while count < least:
        opened = load.run()["count"]
        if opened == 0:
            raise Failed(f"{load.proxy.name} opens no connections")
        count += opened
    return count


def _descriptors(gate):
    return len(os.listdir(f"/proc/{gate.process.pid}/fd"))
