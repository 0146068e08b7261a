"""A PostgreSQL server, gates and devices on this machine, whose bytes and CPU time can be counted."""

import json
import pathlib
import re
import socket
import subprocess
import threading
import time

from processes import Failed, free_port
from stores import Server

GATE = """\
version: 1
listen: {{ address: 127.0.0.1, port: {port}, loops: 1 }}
tls: {{ cert_file: "{authority}/server.pem", key_file: "{authority}/server.key" }}
app_attest:
  challenge_ttl: 10m  # no nonce is removed during a measurement
  apps: [{{ team_id: SALLYPORT1, bundle_id: com.example.app, environments: [development] }}]
  trust:
    attestation_root_file: "{authority}/attestation-root.pem"
    receipt_root_file: "{authority}/receipt-root.pem"
routes: [{{ path: /, upstream: "ws://127.0.0.1:{echo}" }}]
session: {{ {session} }}
store: {{ url: "{store}" }}
limits: {{ global_sessions: 1000000, per_key: {{ sessions: off }} }}
"""
# PostgreSQL does nothing by itself during a measurement: checkpoints and vacuum are asked for.
QUIET = ("checkpoint_timeout=1h", "autovacuum_naptime=1h")


class Site:
    """The folder of a measurement, its server, and an echo server that all gates have as their upstream."""

    def __init__(self, processes, folder, binaries, settings=()):
        self.processes, self.folder, self.binaries, self.count = processes, folder, binaries, 0
        self.server = Server(folder, (*QUIET, *settings))
        self.authority = folder / "authority"

    def __enter__(self):
        self.server.__enter__()
        port = free_port()
        self.processes.start(
            [self.binaries / "sallyport", "dev", "--folder", self.authority, "--port", port],
            self.folder / "dev.log").wait_for_port(port).end()
        self.echo = free_port()
        self.processes.start(
            [self.binaries / "attest", "echo", "--listen", f"127.0.0.1:{self.echo}"],
            self.folder / "echo.log").wait_for_port(self.echo)
        return self

    def __exit__(self, *arguments):
        for process in reversed(self.processes.running):
            process.end()
        self.server.__exit__(*arguments)

    def store(self, folder=None):
        return f"postgres:///postgres?user=postgres&host={folder or self.server.folder}"

    def gate(self, session="ping: off, idle_timeout: off", store=None):
        """Starts a gate with one event loop. `session` is that section of its configuration."""
        self.count += 1
        port = free_port()
        config = self.folder / f"gate{self.count}.yaml"
        config.write_text(GATE.format(port=port, authority=self.authority, echo=self.echo, session=session,
                                      store=store or self.store()))
        process = self.processes.start(
            [self.binaries / "sallyport", "run", "-c", config], self.folder / f"gate{self.count}.log")
        process.wait_for_port(port)
        process.port = port
        return process

    def position(self):
        return self.server.sql("SELECT pg_current_wal_insert_lsn()")

    def written(self, start, end):
        """Returns the bytes between two positions."""
        return int(self.server.sql(f"SELECT pg_wal_lsn_diff('{end}', '{start}')"))

    def wal(self, start, end):
        """Returns the records between two positions: {"Heap/HOT_UPDATE": [count, bytes, page images, their bytes]}."""
        output = subprocess.run(
            [self.server.tools / "pg_waldump", "-p", self.server.folder / "data/pg_wal", "-s", start, "-e", end],
            capture_output=True, text=True).stdout
        found = {}
        pattern = re.compile(r"rmgr: (\w+)\s+len \(rec/tot\):\s*(\d+)/\s*(\d+),.*?desc: (\S+)")
        for line in output.splitlines():
            match = pattern.match(line)
            if not match:
                continue
            entry = found.setdefault(f"{match[1]}/{match[4]}", [0, 0, 0, 0])
            entry[0] += 1
            entry[1] += int(match[2])
            entry[2] += line.count(" FPW")
            entry[3] += int(match[3]) - int(match[2])
        return found


class Load:
    """`attest load` at one gate, which works once for each `begin()`."""

    def __init__(self, site, port, *arguments):
        site.count += 1
        self.process = site.processes.start(
            [site.binaries / "attest", "load", f"wss://localhost:{port}/", "--authority", site.authority, "--json",
             "--step", *arguments], site.folder / f"load{site.count}.log", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._line()

    def begin(self):
        self.process.popen.stdin.write("\n")
        self.process.popen.stdin.flush()

    def report(self):
        return json.loads(self._line())

    def end(self):
        self.process.popen.stdin.close()
        if self.process.popen.wait(60) != 0:
            raise Failed(f"attest load failed:\n{self.process.last_words()}")

    def _line(self):
        line = self.process.popen.stdout.readline()
        if not line:
            raise Failed(f"attest load failed:\n{self.process.last_words()}")
        return line


class Forwarder:
    """Passes connections on, and counts the bytes of both directions. Addresses are (host, port) or a path."""

    def __init__(self, listen, target):
        self.target, self.up, self.down, self.lock = target, 0, 0, threading.Lock()
        self.listener = socket.socket(socket.AF_INET if isinstance(listen, tuple) else socket.AF_UNIX)
        self.listener.bind(listen)
        self.listener.listen(512)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(client.family)
            server.connect(self.target)
            for one, other, is_up in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._pass, args=(one, other, is_up), daemon=True).start()

    def _pass(self, one, other, is_up):
        try:
            while part := one.recv(65536):
                with self.lock:
                    if is_up:
                        self.up += len(part)
                    else:
                        self.down += len(part)
                other.sendall(part)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.listener.close()


def settled_memory(process):
    """Returns the memory of a process once it no longer changes, in bytes."""
    last = process.memory
    for _ in range(25):
        time.sleep(0.2)
        now = process.memory
        if abs(now - last) < 65536:
            return now
        last = now
    return last


def bytes_of_kernel_socket():
    """Returns the bytes of the objects that Linux keeps for an open, idle TCP socket that is watched by epoll."""
    wanted, total = {"TCP", "sock_inode_cache", "filp", "dentry", "eventpoll_epi"}, 0
    for line in pathlib.Path("/proc/slabinfo").read_text().splitlines()[2:]:
        fields = line.split()
        if fields[0] in wanted:
            total += int(fields[3])
            wanted.remove(fields[0])
    if wanted:
        raise Failed(f"/proc/slabinfo has no {', '.join(sorted(wanted))}")
    return total
