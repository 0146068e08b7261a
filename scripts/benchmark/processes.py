"""Processes that a benchmark starts, measures and stops."""

import os
import pathlib
import random
import resource
import signal
import socket
import subprocess
import time


class Failed(Exception):
    """The benchmark failed; the message gives the reason."""


def raise_descriptor_limit(wanted=0):
    """Raises the limit of this process and its children to all that is allowed, and to `wanted` if that may be raised.

    Only root with CAP_SYS_RESOURCE may. Returns the limit of each process.
    """
    _, allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    if wanted > allowed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
            return wanted
        except (ValueError, OSError):
            pass
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, allowed))
    return allowed


def free_port():
    """A port of 127.0.0.1 that is free, and that Linux gives to no client and no server that listens on port 0."""
    first, last = map(int, pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    fixed = [port for port in range(10_000, 65_536) if not first <= port <= last]
    for port in random.sample(fixed, len(fixed)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    raise Failed("no port of 127.0.0.1 is free")


class Processes:
    """The running processes; stops all of them on exit from the context, also after an error."""

    def __init__(self):
        self.running = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.running):
            process.end()

    def start(self, *arguments, **options):
        process = Process(*arguments, **options)
        self.running.append(process)
        return process


class Process:
    """A program on one core."""

    def __init__(self, command, log, core=None, stdin=subprocess.DEVNULL, stdout=None, environment=None):
        self.log = log
        cores = None if core is None else {core}
        with open(log, "ab") as errors:
            # A separate process group: on Ctrl-C, the benchmark itself stops every process.
            self.popen = subprocess.Popen(
                [str(word) for word in command], stdin=stdin, stdout=stdout or errors, stderr=errors,
                env={**os.environ, **(environment or {})}, text=True, bufsize=1, start_new_session=True,
                preexec_fn=cores and (lambda: os.sched_setaffinity(0, cores)))
        self.pid = self.popen.pid

    @property
    def cpu(self):
        """Returns the CPU time of the process in seconds, with nanosecond resolution.

        Includes running threads (/proc/PID/task/*/schedstat) and exited ones (clock_getcpuclockid).
        """
        return time.clock_gettime(~self.pid << 3 | 2)

    @property
    def memory(self):
        """Returns the memory of the process in bytes: the Pss of /proc/PID/smaps_rollup."""
        with open(f"/proc/{self.pid}/smaps_rollup") as lines:
            for line in lines:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
        raise Failed(f"process {self.pid} reports no Pss")

    def wait_for_port(self, port, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.popen.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return self
            except OSError:
                time.sleep(0.05)
        raise Failed(f"{self.popen.args[0]} does not listen on {port}:\n{self.last_words()}")

    def last_words(self):
        with open(self.log, errors="replace") as lines:
            return "".join(lines.readlines()[-8:])

    def end(self, seconds=15):
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
            try:
                self.popen.wait(seconds)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout):
            if stream:
                stream.close()
