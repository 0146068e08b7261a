"""The scenarios, each with its target."""

import contextlib
import json
import statistics
import subprocess
import time

from compiler import compiled
from load import Load, measure
from processes import Failed
from proxies import PROXY_CORE

PROXIES = ["nginx", "haproxy", "gate"]


def rounds_of(fleet, rounds, arguments, rename=lambda name: name):
    """Runs the same load on each proxy in turn, round by round. Sockets stay open between rounds.

    Returns the reports of each proxy, in the order of the rounds.
    """
    with contextlib.ExitStack() as loads:
        running = {name: loads.enter_context(Load(fleet[rename(name)], *arguments(rename(name)))) for name in PROXIES}
        reports = {name: [] for name in PROXIES}
        for index in range(rounds):
            for name in fleet.turn(index):
                reports[name].append(running[name].run())
    return reports


class Messages:
    """CPU time of the proxy per round trip, compared with nginx."""

    unit = "CPU us/message"

    def __init__(self, name, title, target, connections, size, seconds=1.2):
        self.name, self.title, self.target = name, title, target
        self.arguments = ["-c", connections, "--size", size]
        self.seconds = seconds

    def run(self, fleet, rounds):
        arguments = [*self.arguments, "-d", f"{self.seconds}s"]
        reports = rounds_of(fleet, rounds, lambda _: arguments)
        return paired(self, pick(reports, "cpuMicroseconds"), perSecond=medians(pick(reports, "perSecond")))


class Loops:
    """CPU time per message or connection with two loops on two cores, compared with one loop on one core.

    Two loops serve twice what one serves, divided by this ratio, where the load has cores of its own. Throughput would
    measure the load generator, which needs the same two cores.
    """

    def __init__(self, name, title, unit, arguments, seconds):
        self.name, self.title, self.unit, self.target = name, title, unit, None
        self.arguments = [*arguments, "-d", f"{seconds}s"]

    def run(self, fleet, rounds):
        with contextlib.ExitStack() as loads:
            one, two = (loads.enter_context(Load(fleet[name], *self.arguments)) for name in ("gate", "gate-two-loops"))
            samples = {"one loop": [], "gate": []}
            for _ in range(rounds):
                samples["one loop"].append(one.run()["cpuMicroseconds"])
                samples["gate"].append(two.run()["cpuMicroseconds"])
        ratio = statistics.median(two / one for one, two in zip(samples["one loop"], samples["gate"]))
        return absolute(self, samples, toOneLoop={"two loops to one": ratio})


class Latency:
    """Latency at a fixed rate, from the time at which each message was due."""

    unit = "p99 us"

    def __init__(self, name, title, target, seconds=2):
        self.name, self.title, self.target, self.seconds = name, title, target, seconds

    def run(self, fleet, rounds):
        arguments = ["-c", 100, "--rate", 5000, "-d", f"{self.seconds}s"]
        reports = rounds_of(fleet, rounds, lambda _: arguments)
        latency = {name: [report["latencyMicroseconds"] for report in list_] for name, list_ in reports.items()}
        return paired(
            self, pick(latency, "p99"), p50=medians(pick(latency, "p50")), p999=medians(pick(latency, "p999")))


class Connections:
    """CPU time of the proxy for connect + TLS + upgrade + close. The other proxies verify no client."""

    unit = "CPU us/connection"

    def __init__(self, name, title, target, gate, seconds=1.5):
        self.name, self.title, self.target, self.gate, self.seconds = name, title, target, gate, seconds

    def run(self, fleet, rounds):
        reports = rounds_of(
            fleet, rounds, self.arguments, lambda name: self.gate if name == "gate" else name)
        costs = pick(reports, "cpuMicroseconds")
        return paired(
            self, costs, perSecond=medians(pick(reports, "perSecond")),
            perCore={name: 1e6 / cost for name, cost in medians(costs).items()})

    def arguments(self, name):
        # Many parallel connections where each waits for the disk, so that they share commits.
        return ["--connect", "-c", 64 if name == "gate-verified" else 8, "-d", f"{self.seconds}s"]


class Registrations:
    """New devices: connection, challenge, attestation and receipt verified, key stored durably."""

    unit = "CPU us/registration"

    def __init__(self, name, title, seconds=2):
        self.name, self.title, self.target, self.seconds = name, title, None, seconds

    def run(self, fleet, rounds):
        with Load(fleet["gate-verified"], "--register", "-c", 32, "-d", f"{self.seconds}s") as load:
            reports = {"gate": [load.run() for _ in range(rounds)]}
        return paired(self, pick(reports, "cpuMicroseconds"), perSecond=medians(pick(reports, "perSecond")))


class Admissions:
    """Assertions verified and made durable in a second of one core, by the gate's own entry, without sockets."""

    unit = "admissions/s of a core"

    def __init__(self, name, title, devices, seconds=1):
        self.name, self.title, self.target, self.devices, self.seconds = name, title, None, devices, seconds

    def run(self, fleet, rounds):
        # Devices are made for each run, which takes longer than their admissions.
        runs = min(rounds, 3) if self.devices <= 1024 else 1
        reports = [self.measured(fleet.bench) for _ in range(runs)]
        return absolute(
            self, {"gate": [report["per_second_and_core"] for report in reports]},
            commit={"calls": statistics.median(report["calls_per_commit"] for report in reports)})

    def measured(self, bench):
        run = subprocess.run(
            ["taskset", "-c", str(PROXY_CORE), bench.binaries / "gate-bench", "admissions", "--devices",
             str(self.devices), "--seconds", str(self.seconds), "--json"], capture_output=True, text=True)
        if run.returncode != 0:
            raise Failed(f"gate-bench exited with {run.returncode}:\n{run.stderr}")
        return json.loads(run.stdout)


class Memory:
    """Memory of the proxy per connection: growth of the process (Pss)."""

    unit = "bytes/connection"

    def __init__(self, name, title, target, connections, size):
        self.name, self.title, self.target = name, title, target
        self.connections, self.size = connections, size

    def run(self, fleet, rounds):
        values = {}
        for name in PROXIES:
            proxy = fleet.fresh(name)
            # Memory that only the first connections allocate does not count.
            measure(proxy, "-c", 8, "-d", "0.3s")
            values[name] = [self.growth(proxy, min(self.connections, fleet.most_connections))]
            proxy.end()
        # The other proxies are for comparison; the target applies only to the gate.
        more = {"alone": {"OpenSSL": openssl_alone(fleet.bench)}} if self.name == "idle" else {}
        return paired(self, values, is_absolute=True, **more)

    def growth(self, proxy, connections):
        before = proxy.settled_memory()
        with Load(proxy, "-c", connections, *self.work()) as load:
            load.run()
            return (proxy.settled_memory() - before) / connections

    def work(self):
        return ["--messages", 1, "--size", self.size] if self.size else ["--idle"]


def openssl_alone(bench):
    """Bytes that OpenSSL keeps per connection, without a server."""
    program = compiled(bench.folder, "openssl_memory", "", "-lssl", "-lcrypto")
    return int(subprocess.run(
        [program, bench.certificate, bench.key], check=True, capture_output=True, text=True).stdout)


class StalledMemory(Memory):
    """The same for clients that send 16 KiB messages and never read answers."""

    def work(self):
        return ["--stall", "--size", "16KiB", "-d", "20s"]


class Verification:
    """Compares every returned byte, outside the timed runs."""

    unit = "messages compared"

    def __init__(self, name, title, seconds=1):
        self.name, self.title, self.target, self.seconds = name, title, None, seconds

    def run(self, fleet, rounds):
        counts = {}
        for name in PROXIES:
            # A difference makes the load exit with 1, which fails the benchmark.
            counts[name] = [sum(
                measure(fleet[name], "-c", connections, "--size", size, "--verify", "-d", f"{self.seconds}s")["count"]
                for connections, size in ((32, "64"), (8, "16KiB"), (4, "256KiB"), (8, "65535")))]
        return absolute(self, counts)


def scenarios(is_quick):
    # Many short rounds, so that load by other users of the machine affects all proxies equally.
    pace = 0.3 if is_quick else 0.4
    return [
        Messages("64b-1", "64 B, 1 connection", 0.96, 1, "64", pace),
        Messages("64b-32", "64 B, 32 connections", 0.82, 32, "64", pace),
        Messages("64b-1000", "64 B, 1000 connections", 0.78, 1000, "64", pace),
        Messages("16k", "16 KiB, 8 connections", 0.80, 8, "16KiB", pace),
        Messages("256k", "256 KiB, 8 connections", 0.76, 8, "256KiB", pace),
        Loops("loops", "64 B, 32 connections, two loops", "CPU us/message", ["-c", 32, "--size", "64"], pace),
        Loops("loops-connect", "connect, two loops", "CPU us/connection", ["--connect", "-c", 8], pace),
        Latency("latency", "latency at 5000 messages/s over 100 connections", 1.00, 0.5 if is_quick else 0.8),
        Connections("connect", "connect + TLS + upgrade + close, gate open", 0.97, "gate", pace),
        Connections("verified", "the same with an assertion verified, durable", 1.40, "gate-verified", pace),
        Admissions("admissions", "admissions, keys in the cache", 1024),
        # More devices than the cache holds, in turn: each admission reads its key from the store.
        Admissions("admissions-cold", "admissions, keys not in the cache", 1024 if is_quick else 9216),
        Registrations("register", "registrations", 0.5 if is_quick else 0.8),
        Memory("idle", "memory of an idle connection", 14_000, 500 if is_quick else 5000, None),
        Memory("idle-64b", "the same after a 64 B message", 14_000, 500 if is_quick else 5000, "64"),
        Memory("idle-16k", "the same after a 16 KiB message", 14_000, 500 if is_quick else 5000, "16KiB"),
        StalledMemory("stalled", "memory of a stalled reader", 131_072, 50 if is_quick else 200, None),
        Verification("bytes", "every echoed byte compared", 0.5 if is_quick else 1),
    ]


class Fleet:
    """The proxies of a run, started on first use."""

    def __init__(self, bench):
        self.bench = bench
        self.most_connections = (bench.files - 400) // 2
        self._running = {}

    def __getitem__(self, name):
        if name not in self._running:
            self._running[name] = self.bench.start(name)
            time.sleep(0.2)
        return self._running[name]

    def fresh(self, name):
        return self.bench.start(name)

    def turn(self, index):
        """Returns the proxies in an order that changes in each round, so that none always runs after the same one."""
        start = index % len(PROXIES)
        return PROXIES[start:] + PROXIES[:start]


def pick(reports, key):
    return {name: [report[key] for report in list_] for name, list_ in reports.items()}


def medians(samples):
    return {name: statistics.median(values) for name, values in samples.items()}


def paired(scenario, samples, **more):
    """Returns the medians, and the medians of the ratios of each round."""
    result = absolute(scenario, samples, **more)
    for other in ("nginx", "haproxy"):
        if other in samples:
            result[f"to_{other}"] = statistics.median(
                gate / theirs for gate, theirs in zip(samples["gate"], samples[other]))
    return result


def absolute(scenario, samples, **more):
    return {
        "name": scenario.name, "title": scenario.title, "unit": scenario.unit, "target": scenario.target,
        "medians": medians(samples), "samples": samples, **more}
