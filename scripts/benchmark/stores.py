"""scripts/bench --store: the cost of an admission with millions of keys, compared with a thousand.

Fills a small and a large store of each kind. Two programs admit random keys, round by round in turn, so that other load
on the machine affects both. Keys are distributed like real ones, whose ids are hashes. Receipts are omitted, because no
admission reads them.
"""

import base64
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time

from processes import Failed

COLUMNS = ("key_id, key_hash, public_key, app_id, environment, category, bundle_version, counter, used_counters, "
           "registration_nonce, attestation_digest, registered_at")
REGISTERED = 1_750_000_000_000


def say(text):
    print(text, file=sys.stderr, flush=True)


def rows(count):
    """Yields the rows of `count` keys. All values have realistic sizes and cannot be compressed."""
    for number in range(count):
        key = hashlib.sha256(b"key %d" % number).digest()
        more = os.urandom(129)
        name = base64.urlsafe_b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")
        yield (key, name, more[:65], "AAABBBCCC1.com.example.app", "production", 4, "42", 0, -1, more[65:97],
               more[97:], REGISTERED)


class SQLite:
    name = "SQLite"

    def __init__(self, folder, binaries, count):
        self.path = folder / f"{count}.db"
        self.url = f"sqlite://{self.path}"
        subprocess.run([binaries / "sallyport", "store", "migrate", "--store", self.url], check=True, stdout=sys.stderr)
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -4000000")
            marks = ",".join("?" * 12)
            db.executemany(f"INSERT INTO attested_keys ({COLUMNS}) VALUES ({marks})", rows(count))
            db.commit()

    @property
    def size(self):
        return self.path.stat().st_size

    def server_cpu(self):
        return 0.0

    def settle(self):
        pass


class Postgres:
    """A schema on a server that this script started."""

    name = "PostgreSQL"

    def __init__(self, server, binaries, count):
        self.server, self.schema = server, f"keys_{count}"
        server.sql(f"CREATE SCHEMA {self.schema}")
        self.url = f"postgres:///postgres?user=postgres&host={server.folder}&options=-csearch_path%3D{self.schema}"
        subprocess.run([binaries / "sallyport", "store", "migrate", "--store", self.url], check=True, stdout=sys.stderr)
        # The same rows: hashes of the number replace random values.
        server.sql(f"""
            SET search_path = {self.schema}; SET synchronous_commit = off; SET maintenance_work_mem = '512MB';
            INSERT INTO attested_keys ({COLUMNS})
            SELECT key, rtrim(translate(encode(sha256(key), 'base64'), '+/', '-_'), '='), public || 'x', 'AAABBBCCC1.com.example.app', 'production', 4, '42', 0,
              -1, left_half, right_half, {REGISTERED}
            FROM (SELECT sha256(('key ' || n)::bytea) AS key, sha512(('public ' || n)::bytea) AS public,
                sha256(('nonce ' || n)::bytea) AS left_half, sha256(('digest ' || n)::bytea) AS right_half
              FROM generate_series(0, {count - 1}) AS n) AS made""")
        server.sql(f"VACUUM ANALYZE {self.schema}.attested_keys")

    @property
    def size(self):
        return int(self.server.sql(f"SELECT pg_total_relation_size('{self.schema}.attested_keys')"))

    def server_cpu(self):
        return self.server.cpu()

    def settle(self):
        self.server.sql("CHECKPOINT")


class Server:
    """A PostgreSQL server on a Unix socket, with Debian's defaults and 1 GB of shared buffers.

    `settings` are further ones, such as `checkpoint_timeout=1h`.
    """

    def __init__(self, folder, settings=()):
        self.folder = folder / "pg"
        self.settings = "".join(f" -c {setting}" for setting in settings)
        self.tools = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        self.folder.mkdir(mode=0o700)
        self.prefix = []
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
            self.prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
            for parent in self.folder.parents:
                if parent.stat().st_mode & 0o001 == 0:
                    raise Failed(f"the user postgres cannot enter {parent}: its mode needs execute permission for others")

    def __enter__(self):
        data = self.folder / "data"
        self._run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C")
        self._run("pg_ctl", "-D", data, "-w", "-l", self.folder / "log", "-o",
                  f"-k {self.folder} -c listen_addresses= -c shared_buffers=1GB -c max_wal_size=4GB{self.settings}", "start")
        self.pid = int((data / "postmaster.pid").read_text().split()[0])
        return self

    def __exit__(self, *_):
        self._run("pg_ctl", "-D", self.folder / "data", "-w", "-m", "immediate", "stop")

    def _run(self, tool, *arguments):
        result = subprocess.run([*self.prefix, self.tools / tool, *arguments], cwd="/", stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)
        if result.returncode:
            raise Failed(f"{tool}: {result.stderr.strip()}")

    def sql(self, text):
        result = subprocess.run(
            ["psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-U", "postgres", "-c", text],
            capture_output=True, text=True)
        if result.returncode:
            raise Failed(f"psql: {result.stderr.strip()}")
        return result.stdout.strip()

    def cpu(self):
        """Returns the CPU time in seconds of all its running and exited processes."""
        total = 0
        for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = entry.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if entry.parent.name == str(self.pid):
                total += sum(map(int, fields[11:15]))
            elif fields[1] == str(self.pid):
                total += sum(map(int, fields[11:13]))
        return total / os.sysconf("SC_CLK_TCK")


class Visitor:
    """`gate-bench store`, which runs a round on request."""

    def __init__(self, processes, folder, binaries, store, keys, uses):
        self.store, self.uses = store, uses
        self.process = processes.start(
            [binaries / "gate-bench", "store", "--store", store.url, "--keys", keys, "--uses", uses],
            folder / "visitor.log", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process.popen.stdout.readline().strip() != "ready":
            raise Failed(f"gate-bench did not start:\n{self.process.last_words()}")

    def round(self):
        """Returns the CPU time of one admission in microseconds, including the database server."""
        self.store.settle()
        before = self.store.server_cpu()
        self.process.popen.stdin.write("go\n")
        self.process.popen.stdin.flush()
        line = self.process.popen.stdout.readline()
        if not line:
            raise Failed(f"gate-bench exited:\n{self.process.last_words()}")
        return json.loads(line)["cpu_us"] + (self.store.server_cpu() - before) * 1e6 / self.uses


def measure(processes, folder, binaries, make, keys, uses, rounds):
    visitors, sizes = {}, {}
    for count in (1000, keys):
        began = time.monotonic()
        store = make(count)
        sizes[count] = store.size
        visitors[count] = Visitor(processes, folder, binaries, store, count, uses)
        say(f"bench: {store.name} with {count:,} keys ({time.monotonic() - began:.0f} s)")
    samples = {count: [] for count in visitors}
    for number in range(rounds + 1):
        for count, visitor in visitors.items():
            cpu = visitor.round()
            # The first round fills caches.
            if number:
                samples[count].append(cpu)
    memory = {count: visitor.process.memory for count, visitor in visitors.items()}
    small, large = (statistics.median(samples[count]) for count in (1000, keys))
    for visitor in visitors.values():
        visitor.process.end()
    return {"store": store.name, "keys": keys, "uses": uses, "samples": samples, "small_us": small, "large_us": large,
            "ratio": large / small, "bytes": sizes[keys], "memory": memory[keys]}


def compare(processes, folder, binaries, keys, uses, rounds, kinds):
    results = []
    if "sqlite" in kinds:
        results.append(measure(processes, folder, binaries, lambda count: SQLite(folder, binaries, count), keys, uses, rounds))
    if "postgres" in kinds:
        with Server(folder) as server:
            results.append(
                measure(processes, folder, binaries, lambda count: Postgres(server, binaries, count), keys, uses, rounds))
    return results


def table(results):
    lines = []
    for result in results:
        lines.append(
            f"{result['store']}: an admission costs {result['large_us']:.0f} us of CPU at {result['keys']:,} keys, "
            f"{result['small_us']:.0f} us at 1,000: {result['ratio']:.2f} (target: at most 1.3)\n"
            f"    {result['bytes'] / 1e6:,.0f} MB on disk, {result['memory'] / 1e6:,.0f} MB of memory in the gate")
    return "\n".join(lines)
