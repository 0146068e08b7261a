"""Runs of `attest load`, step by step, so that what the proxy did in between can be measured."""

import json
import subprocess

from processes import Failed
from proxies import LOAD_CORE


class Load:
    """One run: `begin()` makes it work and gives what it reports, leaving its sockets open until `end()`."""

    def __init__(self, proxy, *arguments):
        bench = proxy.bench
        # The gate's credentials, or none.
        access = ["--authority", bench.authority] + ([] if proxy.is_verifying else ["--open"])
        self.process = bench.processes.start(
            [bench.binaries / "attest", "load", proxy.url, "--json", "--step", *access, *arguments],
            bench.folder / "load.log", LOAD_CORE, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.proxy = proxy
        self._line()

    def begin(self):
        return json.loads(self._go())

    def end(self):
        self.process.popen.stdin.close()
        status = self.process.popen.wait(30)
        if status != 0:
            raise Failed(f"the load on {self.proxy.name} ended with {status}:\n{self.process.last_words()}")
        self.process.end()

    def _go(self):
        self.process.popen.stdin.write("\n")
        self.process.popen.stdin.flush()
        return self._line()

    def _line(self):
        line = self.process.popen.stdout.readline()
        if not line:
            raise Failed(f"the load on {self.proxy.name} failed:\n{self.process.last_words()}")
        return line


def measure(proxy, *arguments):
    """What a run reports, with the proxy's CPU for each message or connection, in microseconds."""
    load = Load(proxy, *arguments)
    before = proxy.process.cpu
    report = load.begin()
    after = proxy.process.cpu
    load.end()
    if report["count"] == 0:
        raise Failed(f"nothing came back through {proxy.name}")
    report["cpuMicroseconds"] = (after - before) * 1e6 / report["count"]
    return report
