"""Runs `attest load` step by step, so that the proxy can be measured in each step."""

import json
import subprocess

from processes import Failed
from proxies import LOAD_CORE


class Load:
    """A load generator with open sockets that works once per `run()`."""

    def __init__(self, proxy, *arguments):
        bench = proxy.bench
        # The gate's credentials, or none.
        access = ["--ca", bench.certificate]
        access += ["--authority", bench.authority] if proxy.is_verifying else ["--open"]
        self.proxy = proxy
        self.process = bench.processes.start(
            [bench.binaries / "attest", "load", proxy.url, "--json", "--step", *access, *arguments],
            bench.folder / "load.log", LOAD_CORE, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._line()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.end()

    def run(self):
        """Runs once. Returns the report, with the proxy's CPU time per message or connection in microseconds."""
        before = self.proxy.process.cpu
        self.process.popen.stdin.write("\n")
        self.process.popen.stdin.flush()
        report = json.loads(self._line())
        used = self.proxy.process.cpu - before
        report["cpuMicroseconds"] = used * 1e6 / report["count"] if report["count"] else None
        return report

    def end(self):
        """Closes the sockets. Fails if messages were lost or changed."""
        self.process.popen.stdin.close()
        status = self.process.popen.wait(60)
        if status != 0:
            raise Failed(f"the load on {self.proxy.name} exited with {status}:\n{self.process.last_words()}")

    def _line(self):
        line = self.process.popen.stdout.readline()
        if not line:
            raise Failed(f"the load on {self.proxy.name} failed:\n{self.process.last_words()}")
        return line


def measure(proxy, *arguments):
    """Returns the report of a single run."""
    with Load(proxy, *arguments) as load:
        report = load.run()
    if not report["count"]:
        raise Failed(f"no answers came back through {proxy.name}")
    return report
