"""scripts/bench --console: the pages of the gate's console with a million keys and 100,000 sessions.

Fills a store of each kind as --store does. `gate-bench console` opens the sessions, asks for each page in turn, and
measures from the request of the browser to the page, without sockets.
"""

import json
import subprocess
import sys
import time

import stores


def measure(folder, binaries, make, keys, sessions, rounds):
    began = time.monotonic()
    store = make(keys)
    print(f"bench: {store.name} with {keys:,} keys ({time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
    output = subprocess.run(
        [binaries / "gate-bench", "console", "--store", store.url, "--keys", str(keys), "--sessions", str(sessions),
         "--rounds", str(rounds)], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {"store": store.name, "keys": keys, **json.loads(output)}


def compare(folder, binaries, keys, sessions, rounds, kinds):
    results = []
    if "sqlite" in kinds:
        results.append(
            measure(folder, binaries, lambda count: stores.SQLite(folder, binaries, count), keys, sessions, rounds))
    if "postgres" in kinds:
        with stores.Server(folder) as server:
            results.append(measure(
                folder, binaries, lambda count: stores.Postgres(server, binaries, count), keys, sessions, rounds))
    return results


def table(results):
    lines = []
    for result in results:
        lines.append(f"{result['store']}, {result['keys']:,} keys, {result['sessions']:,} sessions: milliseconds of a page")
        lines.append(f"{'':44}{'median':>8}{'p95':>8}{'most':>8}")
        for page in result["pages"]:
            lines.append(f"{page['page'][:44]:44}{page['p50_ms']:8.1f}{page['p95_ms']:8.1f}{page['most_ms']:8.1f}")
        slowest = max(page["p95_ms"] for page in result["pages"])
        more = (result["memory"]["after"] - result["memory"]["before"]) / (1 << 20)
        lines.append(f"slowest p95: {slowest:.1f} ms (target: at most 50); "
                     f"memory of the process: {more:+.1f} MiB (target: at most 16)")
    return "\n".join(lines)
