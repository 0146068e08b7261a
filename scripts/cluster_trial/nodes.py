"""Three nodes of PostgreSQL under Patroni, each with an etcd, as Cluster.md sets them up."""
import dataclasses
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

# Each change of the leader leaves a segment of the log, and PostgreSQL keeps them. Half of this lasts for 20 breaks.
DISK_SIZE = "1g"


@dataclasses.dataclass
class Release:
    """A release of PostgreSQL and Patroni, and where a cluster of it is."""
    binaries: pathlib.Path
    # The folder with the Debian that contains the programs; `/` is that of this machine.
    root: pathlib.Path = pathlib.Path("/")
    scope: str = "sallyport"
    port: int = 5432
    # The port of Patroni's interface.
    control: int = 8008
    suffix: str = ""


class Etcd:
    """The member of etcd on a host."""

    def __init__(self, name, work):
        self.name, self.folder, self.process = name, work / name, None
        self.folder.mkdir()

    def start(self):
        address = ADDRESSES[self.name]
        client, peer = f"http://{address}:2379", f"http://{address}:2380"
        members = ",".join(f"{name}=http://{at}:2380" for name, at in ADDRESSES.items() if name.startswith("db"))
        self.process = spawn(
            inside(self.name, "etcd", "--name", self.name, "--data-dir", self.folder / "etcd",
                   "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
                   "--initial-advertise-peer-urls", peer, "--initial-cluster", members, "--enable-v2"),
            self.folder / "etcd.log")

    def kill(self):
        end(self.process)


class Node:
    """A PostgreSQL server under Patroni, on a host with an etcd."""

    def __init__(self, etcd, work, release, is_asynchronous):
        self.name, self.etcd, self.release, self.process = etcd.name, etcd, release, None
        self.address = ADDRESSES[self.name]
        self.folder = work / f"{self.name}{release.suffix}"
        self.disk = self.folder / "disk"
        self.disk.mkdir(parents=True)
        # A file system of its own, which can be full while the others are not.
        run("mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", self.name, self.disk)
        self.data = self.disk / "data"
        # The PgBouncer of the node, if the gates use one.
        self.pooler = None
        self.config = self.folder / "patroni.yml"
        self.is_asynchronous = is_asynchronous
        self.configure()

    def use(self, binaries):
        """Uses other programs of PostgreSQL from the next start on."""
        self.release = dataclasses.replace(self.release, binaries=binaries)
        self.configure()

    def configure(self):
        text = (PROJECT / "config/patroni/patroni.yml").read_text()
        for old, new in [
            ("scope: sallyport", f"scope: {self.release.scope}"), ("name: db1", f"name: {self.name}"),
            ("10.0.0.1:8008", f"{self.address}:{self.release.control}"),
            ("10.0.0.1:5432", f"{self.address}:{self.release.port}"),
            ("/var/lib/postgresql/15/sallyport", str(self.data)),
            ("/usr/lib/postgresql/15/bin", str(self.release.binaries)),
        ]:
            if old not in text:
                raise Failed(f"config/patroni/patroni.yml does not contain {old}")
            text = text.replace(old, new)
        if self.is_newer_patroni:
            text = text.replace("\netcd:", "\netcd3:")
        if self.is_asynchronous:
            text = text.replace("synchronous_mode: true", "synchronous_mode: false")
            text = text.replace("synchronous_mode_strict: true", "synchronous_mode_strict: false")
        # On one machine the nodes share neither sockets nor the password file.
        text += f"  pgpass: {self.folder}/pgpass\n  parameters:\n    unix_socket_directories: {self.folder}\n"
        text += "    max_wal_size: 96MB\n    min_wal_size: 48MB\n"
        # Otherwise a copy of a standby, which was the leader a moment ago, waits for minutes for its next restartpoint.
        text += "  basebackup:\n    checkpoint: fast\n"
        self.config.write_text(text)

    @property
    def is_newer_patroni(self):
        """Whether Patroni is newer than Debian 12's."""
        return self.release.root != pathlib.Path("/")

    def command(self, *words):
        """The words of a command that runs on the host, in the Debian of the release."""
        return inside(self.name, "chroot", self.release.root, *words)

    def start(self):
        run(*self.command("chown", "postgres:postgres", self.folder, self.disk, self.config))
        self.process = spawn(
            self.command("setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--no-new-privs",
                         "patroni", self.config),
            self.folder / "log", start_new_session=True)

    def stop(self):
        """Stops Patroni, which stops PostgreSQL, as for an update of either."""
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{self.name} has not stopped") from error
        if (self.data / "postmaster.pid").exists():
            raise Failed(f"{self.name}: Patroni has not stopped PostgreSQL")

    def rewinds(self):
        """How often pg_rewind has made this node follow another leader."""
        return (self.folder / "log").read_text(errors="replace").count("pg_rewind exit code=0")

    def state(self):
        """What the node says of itself: its role and its state; empty if it does not answer."""
        try:
            address = f"http://{self.address}:{self.release.control}/patroni"
            with urllib.request.urlopen(address, timeout=3) as answer:
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
        """Kills Patroni and PostgreSQL."""
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
        """Runs SQL as the superuser, on the host: also while that is cut off."""
        return self.tool("psql", "-XAtq", "-d", database, "-c", text)

    def tool(self, name, *arguments, **options):
        """Runs a program of PostgreSQL that connects as the superuser."""
        environment = {**os.environ, "PGPASSWORD": "change-me-1", "PGCONNECT_TIMEOUT": "5"}
        words = [self.release.binaries / name, "-h", self.address, "-p", self.release.port, "-U", "postgres"]
        return run(*self.command(*words, *arguments), env=environment, **options)


def newest_postgres(root=pathlib.Path("/")):
    """The folder with the programs of the newest PostgreSQL of a Debian, as they are called there."""
    folders = sorted((root / "usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if not folders:
        raise Failed(f"{root}: PostgreSQL is not installed")
    return pathlib.Path("/") / folders[-1].parent.relative_to(root)


DATABASES = ["sallyport", "mfa"]


class Cluster:
    def __init__(self, work, etcds, release, is_asynchronous=False):
        self.etcds, self.release, self.is_asynchronous = etcds, release, is_asynchronous
        self.nodes = [Node(etcd, work, release, is_asynchronous) for etcd in etcds]

    def start(self, further=""):
        """Starts the nodes, and makes the role of the gates and their databases. `further` is SQL that takes effect
        together with the role."""
        for node in self.nodes:
            node.start()
        self.settle(within=180)
        leader = self.leader()
        leader.sql(f"CREATE ROLE gate LOGIN PASSWORD 'gate'; {further}")
        for database in DATABASES:
            leader.sql(f"CREATE DATABASE {database} OWNER gate")

    def control(self, *words, **options):
        """Runs patronictl on a host that is not cut off."""
        node = self.leader() or self.nodes[0]
        return run(*node.command("patronictl", "-c", node.config, *words), **options)

    def switch_over(self):
        self.control("switchover", self.release.scope, "--leader", self.leader().name, "--force", within=120)

    def rewinds(self):
        return sum(node.rewinds() for node in self.nodes)

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
        self.control("reinit", self.release.scope, standby.name, "--force", within=120)

    def stop(self):
        for node in self.nodes:
            node.send(signal.SIGCONT)
            node.kill()
            end(node.pooler)


def is_leading(state):
    return state.get("role") in ("master", "primary") and state.get("state") == "running"
