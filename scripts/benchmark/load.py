"""Runs `attest load` step by step, so that the proxy can be measured in each step."""

import json
import subprocess

from processes import Failed
from proxies import LOAD_CORE


class Load:
    """A load generator with open sockets that works once per `run()`."""

    def __init__(self, proxy, *arguments, wrapper=(), waits=True):
        """`wrapper` is a command that runs `attest`. Without `waits`, call `ready()` before the first run."""
        bench = proxy.bench
        # The gate's credentials, or none.
        access = ["--ca", bench.certificate]
        access += ["--authority", bench.authority] if proxy.is_verifying else ["--open"]
        self.proxy = proxy
        self.process = bench.processes.start(
            [*wrapper, bench.binaries / "attest", "load", proxy.url, "--json", "--step", *access, *arguments],
            bench.folder / "load.log", LOAD_CORE, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if waits:
            self.ready()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.end()

    def ready(self):
        """Waits until all sockets are open."""
        self._line()

    def begin(self):
        self.process.popen.stdin.write("\n")
        self.process.popen.stdin.flush()

    def report(self):
        """Waits for the report of what `begin()` has started."""
        return json.loads(self._line())

    def run(self):
        """Runs once. Returns the report, with the proxy's CPU time per message or connection in microseconds."""
        before = self.proxy.process.cpu
        self.begin()
        report = self.report()
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
