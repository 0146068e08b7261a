"""Three nodes of PostgreSQL under Patroni, each with an etcd, as Cluster.md sets them up."""
import errno
import json
import os
import pathlib
import signal
import subprocess
import urllib.error
import urllib.request

from cluster_trial.network import ADDRESSES, end, inside, spawn
from virtual_machine import PROJECT, Failed, await_true, run

DISK_SIZE = "512m"


class Node:
    """A PostgreSQL server under Patroni, and a member of etcd."""

    def __init__(self, number, work, is_asynchronous):
        self.name, self.number = f"db{number}", number
        self.address = ADDRESSES[self.name]
        self.folder, self.process, self.etcd = work / self.name, None, None
        self.disk = self.folder / "disk"
        self.disk.mkdir(parents=True)
        # A file system of its own, which can be full while the others are not.
        run("mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", self.name, self.disk)
        self.data = self.disk / "data"
        text = (PROJECT / "config/patroni/patroni.yml").read_text()
        for old, new in [
            ("name: db1", f"name: {self.name}"), ("10.0.0.1:8008", f"{self.address}:8008"),
            ("10.0.0.1:5432", f"{self.address}:5432"), ("/var/lib/postgresql/15/sallyport", str(self.data)),
            ("/usr/lib/postgresql/15/bin", str(newest_postgres())),
        ]:
            if old not in text:
                raise Failed(f"config/patroni/patroni.yml does not contain {old}")
            text = text.replace(old, new)
        if is_asynchronous:
            text = text.replace("synchronous_mode: true", "synchronous_mode: false")
            text = text.replace("synchronous_mode_strict: true", "synchronous_mode_strict: false")
        # On one machine the nodes share neither sockets nor the password file.
        text += f"  pgpass: {self.folder}/pgpass\n  parameters:\n    unix_socket_directories: {self.folder}\n"
        text += "    max_wal_size: 96MB\n    min_wal_size: 48MB\n"
        # Otherwise a copy of a standby, which was the leader a moment ago, waits for minutes for its next restartpoint.
        text += "  basebackup:\n    checkpoint: fast\n"
        self.config = self.folder / "patroni.yml"
        self.config.write_text(text)
        run("chown", "-R", "postgres:postgres", self.folder)

    def start(self):
        self.process = spawn(
            inside(self.name, "setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--no-new-privs", "patroni",
                   self.config),
            self.folder / "log", start_new_session=True, cwd=self.folder)

    def start_etcd(self):
        client, peer = f"http://{self.address}:2379", f"http://{self.address}:2380"
        members = ",".join(f"{name}=http://{address}:2380" for name, address in ADDRESSES.items() if name.startswith("db"))
        self.etcd = spawn(
            inside(self.name, "etcd", "--name", self.name, "--data-dir", self.folder / "etcd", "--listen-client-urls", client,
                   "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                   "--initial-cluster", members, "--enable-v2"), self.folder / "etcd.log")

    def state(self):
        """What the node says of itself: its role and its state; empty if it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{self.address}:8008/patroni", timeout=3) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)
        except (OSError, ValueError):
            return {}

    def processes(self):
        """Patroni and the servers that it started, which are in sessions of their own."""
        found = [self.process.pid] if self.process else []
        try:
            found.append(int((self.data / "postmaster.pid").read_text().split()[0]))
        except (OSError, ValueError, IndexError):
            pass
        listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.split()
        children = {}
        for pid, parent in zip(map(int, listed[::2]), map(int, listed[1::2])):
            children.setdefault(parent, []).append(pid)
        every = []
        while found:
            every.append(found.pop())
            found += children.get(every[-1], [])
        return every

    def send(self, number):
        for pid in self.processes():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def kill(self):
        self.send(signal.SIGSTOP)
        self.send(signal.SIGKILL)
        end(self.process)

    def fill_disk(self):
        with open(self.disk / "filler", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 20))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise

    def empty_disk(self):
        (self.disk / "filler").unlink()

    def sql(self, text, database="postgres"):
        environment = {**os.environ, "PGPASSWORD": "change-me-1", "PGCONNECT_TIMEOUT": "5"}
        return run(newest_postgres() / "psql", "-XAtq", "-h", self.address, "-U", "postgres", "-d", database, "-c", text,
                   env=environment)


def newest_postgres():
    folders = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if not folders:
        raise Failed("PostgreSQL is not installed")
    return folders[-1].parent


class Cluster:
    def __init__(self, work, is_asynchronous):
        self.is_asynchronous = is_asynchronous
        self.nodes = [Node(number, work, is_asynchronous) for number in (1, 2, 3)]

    def start(self):
        for node in self.nodes:
            node.start_etcd()
        for node in self.nodes:
            node.start()
        self.settle(within=180)
        leader = self.leader()
        leader.sql("CREATE ROLE gate LOGIN PASSWORD 'gate'")
        leader.sql("CREATE DATABASE sallyport OWNER gate")
        leader.sql("CREATE DATABASE mfa OWNER gate")

    @property
    def hosts(self):
        return ",".join(f"{node.address}:5432" for node in self.nodes)

    def leader(self, other_than=None):
        """The node that accepts writes; `None` if there is none."""
        leaders = [node for node in self.nodes if node is not other_than and is_leading(node.state())]
        return leaders[0] if leaders else None

    def settle(self, within=120):
        """Waits until one node leads, and two follow, one of them synchronously."""
        def is_settled():
            leader = self.leader()
            if not leader:
                return False
            replication = leader.state().get("replication", [])
            synchronous = any(one["sync_state"] in ("sync", "quorum") for one in replication)
            return len(replication) == 2 and (synchronous or self.is_asynchronous)
        await_true(is_settled, within, lambda: "the cluster is not complete: " + json.dumps(
            {node.name: node.state() for node in self.nodes}, indent=1))

    def reinitialize_standby(self):
        """Copies the leader's data to a standby that cannot follow."""
        leader = await_true(self.leader, 60, "no node leads")
        standby = next(node for node in self.nodes if node is not leader)
        print(f"  {standby.name} is initialized again: it cannot follow {leader.name}", flush=True)
        run("patronictl", "-c", leader.config, "reinit", "sallyport", standby.name, "--force", within=120)

    def stop(self):
        for node in self.nodes:
            node.send(signal.SIGCONT)
            node.kill()
            end(node.etcd)


def is_leading(state):
    return state.get("role") in ("master", "primary") and state.get("state") == "running"
