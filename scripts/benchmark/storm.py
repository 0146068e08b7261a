"""scripts/bench --storm: devices that lose their sockets at one moment and come back at once.

Each server in turn admits a few devices at a time first, which gives its best rate. Then all of its devices have a
socket, lose it at one moment, and come back: without pauses between failed attempts, and with those of the client
library. Other sockets send messages at a low rate meanwhile.

The load that returns has a lower priority than the load that sends messages, because one core has both: latency would
measure the load generator.
"""

import contextlib
import http.client
import json
import math
import os
import re
import signal
import sys
import threading
import time

import stores
from load import Load
from processes import Failed, free_port

# The admitted sockets that go on, and their messages a second.
ADMITTED, RATE = 50, 500
# The sockets that are opened at a time for the best rate: enough to keep a server busy, and to share commits. Each of
# several processes gets its part of them, and at least the second number.
AT_A_TIME, AT_LEAST = 64, 16
# A fifth more than the time of the best rate.
TOLERANCE = 1.2
# The devices that open a socket at the same time. They share a core, which makes a thousand proofs a second: with more of
# them, servers would end handshakes whose devices wait for that core.
AT_ONCE = 2_500
# Linux has 28,232 ports from one address to one port, and a closed socket may keep its port for a while.
DEVICES_OF_ECHO = 10_000
# What a process needs beside its sockets: files, pipes, connections to its store, and the admitted sockets.
OTHER_DESCRIPTORS = 1_000
# More processes would measure how the kernel divides a core.
MOST_PROCESSES = 24
COUNTERS = re.compile(
    r"sallyport_(admissions|refusals|connections_refused|tls_handshake_failures|accept_pauses|upstream_failures)_total")


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def descriptors(devices):
    """Returns how many a server needs: two for each socket, for those before the storm and those after it."""
    return 4 * devices + OTHER_DESCRIPTORS


def processes(devices, files):
    """Returns how many processes share the devices if each may have `files` descriptors."""
    count = math.ceil(4 * devices / max(files - OTHER_DESCRIPTORS, 1))
    if count > MOST_PROCESSES:
        raise Failed(f"{devices:,} devices would need {count:,} processes with {files:,} descriptors each\n"
                     f"hint: raise `ulimit -Hn`, or use at most {MOST_PROCESSES * (files - OTHER_DESCRIPTORS) // 4:,} "
                     "devices")
    return count


def echoes(devices, files):
    """Returns how many echo servers are needed, so that ports to them and their descriptors suffice."""
    return math.ceil(devices / min(DEVICES_OF_ECHO, (files - OTHER_DESCRIPTORS) // 2))


class Part(Load):
    """A load on one proxy, which is killed after `limit` seconds."""

    def __init__(self, proxy, limit, *arguments, wrapper=()):
        super().__init__(proxy, *arguments, wrapper=wrapper, waits=False)
        self.timer = threading.Timer(limit, self.process.popen.kill)
        self.timer.daemon = True
        self.timer.start()

    def __exit__(self, *_):
        self.timer.cancel()
        self.process.end()


class Messages:
    """The sockets that are open all the time. `stop()` returns the latency since `begin()`."""

    def __init__(self, stack, proxies, limit):
        share = math.ceil(ADMITTED / len(proxies))
        self.sockets = share * len(proxies)
        self.parts = [
            stack.enter_context(Part(
                proxy, limit, "-c", share, "--rate", f"{RATE / len(proxies):g}", "-d", f"{limit}s"))
            for proxy in proxies]
        for part in self.parts:
            part.ready()

    def begin(self):
        for part in self.parts:
            part.begin()

    def stop(self):
        for part in self.parts:
            part.process.popen.send_signal(signal.SIGINT)
        reports = [part.report() for part in self.parts]
        latencies = [report["latencyMicroseconds"] for report in reports if report["latencyMicroseconds"]]
        if len(latencies) < len(reports):
            raise Failed("no message of the admitted sockets came back")
        # Of several processes, that with the longest latency.
        longest = {key: max(latency[key] for latency in latencies) / 1000 for key in ("p50", "p99", "max")}
        return {"sockets": self.sockets, "count": sum(report["count"] for report in reports),
                "lost": sum(report["losses"] for report in reports), "milliseconds": longest}


class Readiness:
    """Asks gates for their readiness ten times a second, as a balancer does more seldom."""

    PATIENCE = 2

    def __init__(self, ports):
        self.ports, self.is_over = ports, threading.Event()
        self.asked = self.unanswered = 0
        self.slowest = 0.0
        # By check: how often it was not ready, and how often it warned.
        self.unready, self.warnings = {}, {}
        self.not_ready = 0
        self.thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join(self.PATIENCE * len(self.ports) + 1)

    def _poll(self):
        while not self.is_over.wait(0.1):
            for port in self.ports:
                self._ask(port)

    def _ask(self, port):
        began = time.monotonic()
        self.asked += 1
        try:
            status, text = get(port, "/readyz?verbose", self.PATIENCE)
            checks = json.loads(text).get("checks", [])
        except (OSError, ValueError, http.client.HTTPException):
            self.unanswered += 1
            return
        finally:
            self.slowest = max(self.slowest, time.monotonic() - began)
        self.not_ready += status != 200
        for check in checks:
            if not check["ready"]:
                self.unready[check["name"]] = self.unready.get(check["name"], 0) + 1
            elif check.get("warning"):
                self.warnings[check["name"]] = self.warnings.get(check["name"], 0) + 1

    @property
    def result(self):
        return {"asked": self.asked, "not_ready": self.not_ready, "unanswered": self.unanswered,
                "slowest_milliseconds": self.slowest * 1000, "unready": self.unready, "warnings": self.warnings}


def get(port, path, patience):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patience)
    try:
        connection.request("GET", path, headers={"Accept": "application/json" if "readyz" in path else "text/plain"})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


class Server:
    """A row of the table: a proxy, or several processes that share the devices."""

    def __init__(self, title, proxies, devices, ports=(), database=None):
        """Each process gets as many devices; their number is rounded up for that."""
        self.title, self.proxies, self.ports, self.database = title, proxies, ports, database
        self.share = math.ceil(devices / len(proxies))
        self.devices = self.share * len(proxies)

    def measure(self, seconds):
        best, cost = self.best_rate(seconds)
        self.say(f"best rate {best:,.0f} sockets a second")
        quiet = self.quiet(seconds)
        self.say(f"p99 of messages in quiet {quiet['milliseconds']['p99']:.1f} ms")
        storms = [self.storm(backs_off, best) for backs_off in (False, True)]
        return {"server": self.title, "processes": len(self.proxies), "devices": self.devices,
                "verifies": self.proxies[0].is_verifying, "best_per_second": best, "best_cost": cost, "quiet": quiet,
                "storms": storms}

    def say(self, text):
        say(f"{self.title}: {text}")

    def best_rate(self, seconds):
        """Returns the sockets a second of the best of three runs, and what a socket costs then."""
        at_a_time = max(AT_A_TIME // len(self.proxies), AT_LEAST)
        with contextlib.ExitStack() as stack:
            parts = [
                stack.enter_context(Part(proxy, 60 + 6 * seconds, "--connect", "-c", at_a_time, "-d", f"{seconds}s"))
                for proxy in self.proxies]
            runs = []
            for part in parts:
                part.ready()
            for _ in range(3):
                before = self.processor_time(parts)
                for part in parts:
                    part.begin()
                reports = [part.report() for part in parts]
                runs.append((sum(report["perSecond"] for report in reports),
                             self.cost(before, parts, sum(report["count"] for report in reports))))
        rate, cost = max(runs, key=lambda run: run[0])
        if not rate:
            raise Failed(f"{self.title} admits no sockets")
        return rate, cost

    def processor_time(self, parts):
        """Returns the seconds of a processor that the servers have used, with their database, and the devices."""
        servers = sum(proxy.process.cpu for proxy in self.proxies) + (self.database.cpu() if self.database else 0)
        return {"servers": servers, "devices": sum(part.process.cpu for part in parts)}

    def cost(self, before, parts, sockets):
        """Returns the milliseconds of a processor that each of so many sockets took on both sides since `before`."""
        return {side: (seconds - before[side]) * 1000 / max(sockets, 1)
                for side, seconds in self.processor_time(parts).items()}

    def quiet(self, seconds):
        self.settle()
        with contextlib.ExitStack() as stack:
            messages = Messages(stack, self.proxies, 60 + seconds)
            messages.begin()
            time.sleep(seconds)
            return messages.stop()

    def storm(self, backs_off, best):
        self.settle()
        mode = "with" if backs_off else "without"
        # The pauses of devices grow to a minute.
        duration = round(min(600, max(90, 5 * self.devices / best)))
        # A busy machine registers 50 devices a second, a quiet one several times as many.
        preparation = 120 + self.devices // 40
        limit = preparation + duration + 60
        arguments = ["--storm", "-c", self.share, "--at-once", max(AT_ONCE // len(self.proxies), 1),
                     "-d", f"{duration}s"]
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            parts = [
                stack.enter_context(Part(
                    proxy, limit, *arguments, *(["--backoff"] if backs_off else []), wrapper=("nice", "-n", "10")))
                for proxy in self.proxies]
            for part in parts:
                part.ready()
            self.say(f"{self.devices:,} devices have sockets ({time.monotonic() - began:.0f} s); storm {mode} backoff")
            messages = Messages(stack, self.proxies, limit)
            before = self.counters()
            readiness = stack.enter_context(Readiness(self.ports)) if self.ports else None
            messages.begin()
            used = self.processor_time(parts)
            for part in parts:
                part.begin()
            reports = [part.report() for part in parts]
            cost = self.cost(used, parts, sum(report["count"] for report in reports))
            latency = messages.stop()
            after = self.counters()
        result = returned(reports, self.devices, best)
        result |= {"backoff": backs_off, "cost": cost, "messages": latency, "readiness": readiness and readiness.result,
                   "counters": {name: after[name] - before.get(name, 0) for name in after
                                if after[name] != before.get(name, 0)}}
        took = time.monotonic() - began
        self.say(f"{result['back']:,} are back after {result['seconds']:.1f} s ({took:.0f} s in all)")
        return result

    def counters(self):
        """Returns what the gates have counted, by name and labels."""
        counts = {}
        for port in self.ports:
            for line in get(port, "/metrics", 30)[1].splitlines():
                name, _, value = line.rpartition(" ")
                if COUNTERS.match(name):
                    counts[name] = counts.get(name, 0) + int(float(value))
        return counts

    def settle(self, patience=60):
        """Waits until the sockets of the load before are closed."""
        last = None
        for _ in range(patience):
            time.sleep(1)
            now = [len(os.listdir(f"/proc/{proxy.process.pid}/fd")) for proxy in self.proxies]
            if now == last:
                return
            last = now


def returned(reports, devices, best):
    """Returns how the devices came back. Of several processes, the time is that of the last one."""
    back = sum(report["count"] for report in reports)
    is_complete = back == devices
    seconds = max(report["seconds"] for report in reports)
    times = {}
    # The percentiles are those of the devices that are back.
    if is_complete:
        for name, key in (("half", "p50"), ("90", "p90"), ("99", "p99"), ("all", "max")):
            times[name] = max(report["latencyMicroseconds"][key] for report in reports) / 1e6
        seconds = times["all"]
    return {"back": back, "seconds": seconds, "times": times, "goodput": back / seconds / best,
            "allowed_seconds": devices / best * TOLERANCE,
            "is_in_time": is_complete and seconds <= devices / best * TOLERANCE,
            "attempts_failed": sum(report["attemptsFailed"] for report in reports)}


def servers(bench, devices):
    """Yields a function for each server that starts it in a context."""
    count = processes(devices, bench.files)

    @contextlib.contextmanager
    def proxies(title, name):
        running = [bench.start(name) for _ in range(count)]
        try:
            yield Server(title if count == 1 else f"{count} {title}", running, devices)
        finally:
            for proxy in running:
                proxy.end()

    @contextlib.contextmanager
    def gates(title, name, count, server=None):
        ports = [free_port() for _ in range(count)]
        store = {"store": f"postgres:///postgres?user=postgres&host={server.folder}"} if server else {}
        running = [
            bench.start(name, settings={
                "sessions": 1_000_000, "more": f'metrics: {{ listen: "127.0.0.1:{port}" }}', **store})
            for port in ports]
        try:
            yield Server(f"gate, {title}" if count == 1 else f"{count} gates, {title}", running, devices, ports, server)
        finally:
            for proxy in running:
                proxy.end()

    @contextlib.contextmanager
    def on_postgres(count):
        with stores.Server(bench.folder, [f"max_connections={20 + 10 * count}"]) as server:
            with gates("PostgreSQL", "gate-verified", count, server) as running:
                yield running

    yield "nginx", lambda: proxies("nginx", "nginx")
    yield "HAProxy", lambda: proxies("HAProxy", "haproxy")
    yield "gate, enforcement off", lambda: gates("enforcement off", "gate", count)
    # Several gates on SQLite do not share their store: each has the keys of its own devices.
    yield "gate, SQLite", lambda: gates("SQLite", "gate-verified", count)
    yield "gates, PostgreSQL", lambda: on_postgres(max(count, 2))


def compare(bench, devices, seconds):
    """Returns the results, and how many servers failed."""
    results, failures = [], 0
    for title, server in servers(bench, devices):
        began = time.monotonic()
        say(f"{title}: starting")
        try:
            with server() as running:
                results.append(running.measure(seconds))
        except Failed as failure:
            # A failed server does not invalidate the others.
            failures += 1
            print(f"error: {title}: {failure}", file=sys.stderr, flush=True)
        say(f"{title} ({time.monotonic() - began:.0f} s)")
    return results, failures


HEADINGS = ("", "devices", "best/s", "p99 quiet", "in storm", "half", "90 %", "99 %", "all", "goodput", "in time",
            "failed", "not ready")


def row(result, storm):
    times = [f"{storm['times'][key]:.1f} s" if key in storm["times"] else "-" for key in ("half", "90", "99", "all")]
    readiness = storm["readiness"]
    unready = f"{readiness['not_ready'] + readiness['unanswered']} of {readiness['asked']}" if readiness else "-"
    title = "  with backoff" if storm["backoff"] else result["server"]
    latencies = [f"{part['milliseconds']['p99']:.1f} ms" for part in (result["quiet"], storm["messages"])]
    return (title, f"{result['devices']:,}", f"{result['best_per_second']:,.0f}", *latencies, *times,
            f"{storm['goodput']:.0%}", "yes" if storm["is_in_time"] else "no", f"{storm['attempts_failed']:,}", unready)


def table(results):
    rows = [HEADINGS, *(row(result, storm) for result in results for storm in result["storms"])]
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(HEADINGS))]
    lines = ["  ".join([cells[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:]))])
             for cells in rows]
    for result in results:
        for storm in result["storms"]:
            lines += details(result, storm)
    return "\n".join(lines)


def details(result, storm):
    """Yields lines about what the table does not show."""
    title = f"{result['server']}, {'with' if storm['backoff'] else 'without'} backoff"
    if storm["back"] < result["devices"]:
        yield f"{title}: {storm['back']:,} of {result['devices']:,} devices were back after {storm['seconds']:.0f} s"
    if storm["messages"]["lost"]:
        yield f"{title}: {storm['messages']['lost']} of {storm['messages']['sockets']} admitted sockets were lost"
    costs = [f"{side} {storm['cost'][side]:.2f} ({result['best_cost'][side]:.2f} at the best rate)"
             for side in ("servers", "devices")]
    yield f"{title}: milliseconds of a processor for a socket: {', '.join(costs)}"
    readiness = storm["readiness"]
    if readiness:
        reasons = [f"{name} {count}" for name, count in readiness["unready"].items()]
        reasons += [f"no answer {readiness['unanswered']}"] if readiness["unanswered"] else []
        reasons += [f"overloaded {readiness['warnings']['load']}"] if "load" in readiness["warnings"] else []
        reasons += [f"slowest answer {readiness['slowest_milliseconds']:.0f} ms"]
        yield f"{title}: /readyz: {', '.join(reasons)}"
    if storm["counters"]:
        counts = [f"{name.removeprefix('sallyport_')} {count:,}" for name, count in sorted(storm["counters"].items())]
        yield f"{title}: {', '.join(counts)}"
