"""A cluster that is broken again and again while devices use it, and what it acknowledged to them."""
import concurrent.futures
import copy
import itertools
import os
import random
import socket
import threading
import time

from accounts import Accounts
from cluster_trial.breaks import KINDS
from cluster_trial.major import MAJOR_PORT
from cluster_trial.network import ADDRESSES, Network, end, inside, spawn
from cluster_trial.nodes import Cluster, Etcd, Release, newest_postgres
from cluster_trial.poolers import PORT, configure_pooler, start_balancer, start_pooler
from phones import Phone, opening
from virtual_machine import Client, Failed, await_true, run

GATES = ["gate1", "gate2"]


class Programs:
    """The programs of this project, as the devices use them."""

    def __init__(self, folder, work):
        self.folder, self.url, self.clients = folder, "", []
        own = {name: value for name, value in os.environ.items()
               if not name.startswith(("SALLYPORT_", "MFA_BACKEND_", "NOTIFY_", "LISTEN_", "WATCHDOG_"))}
        self.environment = {**own, "SALLYPORT_ROOT": str(work / "root"), "XDG_DATA_HOME": str(work / "data")}
        self.authority = work / "authority"

    def program(self, name):
        return [self.folder / name]

    def reaching(self, url):
        """The same programs, which use another address of the gates."""
        other = copy.copy(self)
        other.url = url
        return other

    def make_authority(self, work):
        """Makes the simulated roots, and a certificate for localhost: those of a development gate."""
        log = work / "dev.log"
        gate = spawn([*self.program("sallyport"), "dev", "--folder", self.authority, "--port", "0", "--upstream",
                      "ws://127.0.0.1:9"], log, env=self.environment)
        await_true(lambda: "\nnext " in log.read_text(), 60, lambda: "sallyport dev has not started: " + log.read_text())
        end(gate)


class Trial:
    def __init__(self, arguments, programs, work):
        self.arguments, self.programs, self.work = arguments, programs, work
        self.seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1 << 32)
        self.chance = random.Random(self.seed)
        self.phones, self.processes, self.entrances = [], [], []
        self.network = self.cluster = self.accounts = None
        self.totals = {"registered": 0, "admitted": 0, "revoked": 0}
        # A number is the name of a device's folder: no other device may have it.
        self.numbers = itertools.count()
        # For each kind, the times until a new device got in.
        self.outages = {}
        # For each kind, how often pg_rewind has made a node follow the new leader.
        self.rewinds = {}

    # The servers.

    def start(self):
        self.network = Network()
        etcds = [Etcd(name, self.work) for name in ("db1", "db2", "db3")]
        for etcd in etcds:
            etcd.start()
        self.cluster = Cluster(self.work, etcds, Release(newest_postgres()), is_asynchronous=self.arguments.control)
        self.cluster.start()
        if self.arguments.pgbouncer:
            leader = self.cluster.leader()
            for node in self.cluster.nodes:
                configure_pooler(node, leader)
                start_pooler(node)
        for name in GATES:
            self.start_gate(name)
        self.balance()
        if not self.arguments.gate:
            self.start_backends()

    def start_backends(self):
        keys = self.work / "keys.json"
        keys.write_text(run(*self.programs.program("mfa-backend"), "keys", "make", env=self.programs.environment))
        keys.chmod(0o600)
        databases = [["--database", self.database(name, "mfa"), "--keys", keys] for name in GATES]
        for name, database in zip(GATES, databases):
            self.start_backend(name, database)
        self.accounts = Accounts(
            self.programs, self.work, random.Random(f"{self.seed}-accounts"),
            lambda *words: run(*self.programs.program("mfa-backend"), "admin", *words, *databases[0],
                               env=self.programs.environment))

    def database(self, gate, name):
        """The URL of a database for the programs on the gate's host."""
        if self.arguments.pgbouncer:
            return f"postgres://gate:gate@{ADDRESSES[gate]}:{PORT}/{name}?target_session_attrs=any"
        return f"postgres://gate:gate@{self.hosts}/{name}"

    @property
    def hosts(self):
        # With the place of the cluster that a major update makes.
        ports = [5432, MAJOR_PORT] if "major" in self.arguments.kinds else [5432]
        return ",".join(f"{node.address}:{port}" for port in ports for node in self.cluster.nodes)

    def start_backend(self, name, database):
        """Starts the MFA backend that is behind the gate, on the same host."""
        log = self.work / name / "backend.log"
        options = ["--listen", "127.0.0.1:8080", "--sms-sink", "log", "--gate-issuer", "sallyport",
                   "--gate-jwks", "https://localhost:6200/.well-known/sallyport/jwks.json",
                   "--gate-ca", self.programs.authority / "tls-ca.pem", "--audience", "sallyport-upstream",
                   "--ip-messages-per-hour", "off", "--ip-code-requests", "off"]
        self.processes.append(spawn(inside(name, *self.programs.program("mfa-backend"), "run", *database, *options), log,
                                    env=self.programs.environment))
        await_true(lambda: '"message":"listening"' in log.read_text(), 60,
                   lambda: "the MFA backend has not started: " + log.read_text())

    def start_gate(self, name):
        folder = self.work / name
        folder.mkdir()
        if self.arguments.pgbouncer:
            self.processes.append(start_balancer(name, folder))
        self.processes.append(spawn(inside(name, *self.programs.program("attest"), "echo", "--listen", "127.0.0.1:8081"),
                                    folder / "echo.log"))
        (folder / "gate.yaml").write_text(f"""version: 1
listen: {{ address: 0.0.0.0, port: 6200, loops: 1 }}
tls: {{ cert_file: "{self.programs.authority}/server.pem", key_file: "{self.programs.authority}/server.key" }}
app_attest:
  apps: [{{ team_id: SALLYPORT1, bundle_id: com.example.app, environments: [development] }}]
  trust:
    attestation_root_file: "{self.programs.authority}/attestation-root.pem"
    receipt_root_file: "{self.programs.authority}/receipt-root.pem"
routes:
  - {{ path: /api, upstream: "ws://127.0.0.1:8080", forward: all }}
  - {{ path: /, upstream: "ws://127.0.0.1:8081" }}
store: {{ url: "{self.database(name, 'sallyport')}" }}
admin: {{ listen: "unix:{folder}/admin.sock" }}
limits: {{ per_ip: {{ challenges: off, registrations: off, upgrades: off }}, per_key: {{ sessions: off, upgrades: off }} }}
""")
        self.processes.append(spawn(inside(name, *self.programs.program("sallyport"), "run", "-c", folder / "gate.yaml"),
                                    folder / "log", env=self.programs.environment))
        await_true(lambda: '"message":"listening"' in (folder / "log").read_text(), 60,
                   lambda: "the gate has not started: " + (folder / "log").read_text())

    def balance(self):
        """Gives both gates one address, since devices know a gate by it, and each gate a further one."""
        config = self.work / "haproxy.cfg"
        servers = [f"  server {name} {ADDRESSES[name]}:6200\n" for name in GATES]
        text = "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n"
        for port, chosen in [(6200, servers), (6201, servers[:1]), (6202, servers[1:])]:
            text += f"listen port{port}\n  bind 127.0.0.1:{port}\n  balance roundrobin\n{''.join(chosen)}"
        config.write_text(text)
        self.processes.append(spawn(["haproxy", "-db", "-f", config], self.work / "haproxy.log"))
        self.programs.url = "wss://localhost:6200/"
        self.entrances = [self.programs.reaching(f"wss://localhost:{port}/") for port in (6201, 6202)]

        def answers():
            try:
                socket.create_connection(("127.0.0.1", 6202), 5).close()
                return True
            except OSError:
                return False
        await_true(answers, 30, "haproxy has not started")

    def stop(self):
        for process in self.processes:
            end(process)
        if self.cluster:
            self.cluster.stop()
            for etcd in self.cluster.etcds:
                etcd.kill()

    # The devices.

    def act(self, number, stopped, faults):
        chance = random.Random(f"{self.seed}-{len(self.phones)}-{number}")
        own = [phone for phone in self.phones if phone.worker == number]
        while not stopped.is_set():
            candidates = [phone for phone in own if phone.key and not phone.may_be_revoked]
            try:
                if len(candidates) < 2 or chance.random() < 0.2:
                    phone = Phone(next(self.numbers), self.programs, self.work)
                    phone.worker = number
                    own.append(phone)
                    self.phones.append(phone)
                    phone.register()
                    self.totals["registered"] += 1
                elif number == 0 and len(candidates) > 3 and chance.random() < 0.2:
                    phone = chance.choice(candidates)
                    phone.may_be_revoked = True
                    run(*self.programs.program("sallyport"), "keys", "revoke", "-c", self.work / "gate1/gate.yaml", "--",
                        phone.key, env=self.programs.environment)
                    phone.is_revoked = True
                    self.totals["revoked"] += 1
                else:
                    chance.choice(candidates).get_in()
                    self.totals["admitted"] += 1
            except (Failed, OSError):
                # Refused, or without an answer: nothing was acknowledged.
                time.sleep(0.2)
            except Exception as error:  # noqa: BLE001  # anything else is a fault of this program
                faults.append(error)
                return

    def use_accounts(self, stopped, faults):
        while not stopped.is_set():
            try:
                self.accounts.act()
            except Failed:
                time.sleep(0.2)
            except Exception as error:  # noqa: BLE001
                faults.append(error)
                return

    def serves_again(self, since, entrance):
        """The seconds until a new device was registered and got in."""
        probe = Phone(next(self.numbers), entrance, self.work)

        def works():
            try:
                if not probe.key:
                    probe.register()
                probe.get_in()
                return True
            except (Failed, OSError):
                return False
        await_true(works, 180, "no device gets in any more")
        self.phones.append(probe)
        return time.monotonic() - since

    # The judgement.

    def replays(self):
        """The proofs of the last seconds that one of the gates accepts again while the cluster is broken."""
        proofs = [(phone, proof) for phone in self.phones for proof in phone.accepted[-1:]][-4:]

        def replay(entrance, phone, proof):
            try:
                accepted = opening(entrance, proof) == 101
            except OSError:
                accepted = False
            return [f"phone {phone.number}: a proof was accepted twice before the repair"] if accepted else []
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            pending = [pool.submit(replay, entrance, *one) for entrance in self.entrances for one in proofs]
            return [line for one in pending for line in one.result()]

    def check(self):
        """What was acknowledged and does not hold."""
        lost = []
        for phone in list(self.phones):
            for proof in phone.accepted:
                if opening(self.programs, proof) == 101:
                    lost.append(f"phone {phone.number}: a proof was accepted twice")
            phone.accepted = []
            if not phone.key or phone.may_be_revoked and not phone.is_revoked:
                continue
            status = opening(self.programs, phone.proof())
            if phone.is_revoked and status == 101:
                lost.append(f"phone {phone.number}: its revocation was lost")
            if not phone.is_revoked and status != 101:
                lost.append(f"phone {phone.number}: registered, and refused with {status}")
        # The others have been judged, and would make each check longer.
        self.phones = self.phones[-20:]
        return lost

    def round(self, number, kind):
        client = Client(self.programs, self.work / f"open{number}")
        client.echo("before")
        stopped, faults = threading.Event(), []
        workers = [threading.Thread(target=self.act, args=[one, stopped, faults], daemon=True) for one in range(2)]
        if self.accounts:
            workers.append(threading.Thread(target=self.use_accounts, args=[stopped, faults], daemon=True))
        for worker in workers:
            worker.start()
        time.sleep(self.chance.uniform(4, 9))
        KINDS[kind].prepare(self)
        cluster, rewinds = self.cluster, self.cluster.rewinds()
        before, began = dict(self.totals), time.monotonic()
        entrance = self.programs if KINDS[kind].gate is None else self.entrances[GATES.index(KINDS[kind].gate)]
        repair = KINDS[kind].begin(self)
        outage = self.serves_again(began, entrance) if KINDS[kind].is_survived else None
        time.sleep(self.chance.uniform(1, 4))
        found = self.replays()
        repaired = time.monotonic()
        repair()
        if outage is None:
            outage = self.serves_again(repaired, entrance)
        self.cluster.settle(within=180)
        stopped.set()
        for worker in workers:
            worker.join()
        if faults:
            raise Failed(f"round {number}: {faults[0]!r}")
        try:
            client.echo("after")
        except Failed as error:
            found.append(f"an open socket was lost: {error}")
        client.process.kill()
        client.process.wait()
        self.outages.setdefault(kind, []).append(outage)
        self.rewinds[kind] = self.rewinds.get(kind, 0) + cluster.rewinds() - rewinds
        counts = ", ".join(f"{count} {name}" for name, count in self.all_totals().items())
        print(f"{number}: {kind}; a new device gets in {outage:.0f} s after the {self.start_of_outage(kind)}, "
              f"{self.totals['admitted'] - before['admitted']} admitted meanwhile; in all {counts}", flush=True)
        return found + self.check() + (self.accounts.check() if self.accounts else [])

    def run(self):
        print(f"scripts/cluster: seed {self.seed}", flush=True)
        self.programs.make_authority(self.work)
        self.start()
        kinds = self.arguments.kinds
        for number in range(1, self.arguments.rounds + 1):
            lost = self.round(number, kinds[(number - 1) % len(kinds)])
            print("".join(f"  | {line}\n" for line in lost), end="", flush=True)
            if lost:
                return lost
        # What is not there cannot be lost.
        totals = self.all_totals()
        for name in ("registered", "admitted") if self.arguments.gate else ("registered", "admitted", "enrolled"):
            if not totals[name]:
                raise Failed(f"the trial shows nothing: 0 {name}")
        for kind, outages in self.outages.items():
            print(f"{kind}: {len(outages)} times; a new device gets in at most {max(outages):.0f} s after the "
                  f"{self.start_of_outage(kind)}; pg_rewind succeeded {self.rewinds[kind]} times",
                  flush=True)
        return []

    def all_totals(self):
        return {**self.totals, **self.accounts.totals} if self.accounts else self.totals

    def start_of_outage(self, kind):
        return "break" if KINDS[kind].is_survived else "repair"
