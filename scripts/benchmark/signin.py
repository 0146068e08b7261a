"""Measures bearer against a provider on this machine: what a sign-in, a refresh and a stored token cost."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import urllib.request

from processes import Failed

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "Tests" / "SignIn" / "Programs" / "hostile_provider.py"
PASSWORD = "password-of-the-user-42\n"


class Bench:
    """A provider with plain HTTP on loopback, and bearer with a configuration and a store of its own."""

    def __init__(self, binaries, folder):
        self.bearer, self.folder = str(binaries / "bearer"), folder
        self.provider = subprocess.Popen(
            ["/usr/bin/python3", PROGRAM, "--plain"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.issuer = json.loads(self.provider.stdout.readline())["issuer"]
        (folder / "bearer.yaml").write_text(
            f"version: 1\nproviders:\n  work:\n    issuer: {self.issuer}\n    client_id: public-client\n"
            "    scopes: [openid, offline_access]\n    password_grant: true\n    dpop: off\n")
        browser = folder / "browser"
        browser.write_text('#!/bin/sh\nexec curl -sSL -b "" --max-time 60 "$1"\n')
        browser.chmod(0o700)
        self.environment = {**os.environ, "BEARER_CONFIG": str(folder / "bearer.yaml"),
                            "BEARER_STORE": str(folder / "store"), "BROWSER": str(browser)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.provider.stdin.close()
        self.provider.wait(10)

    def control(self, **change):
        request = urllib.request.Request(self.issuer + "/control", json.dumps(change).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def run(self, *words, text=""):
        """Runs bearer, and returns its output, its time in milliseconds and its peak memory in KiB."""
        began = time.perf_counter()
        process = subprocess.Popen(
            [self.bearer, *words], env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        process.stdin.write(text)
        process.stdin.close()
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, output, (time.perf_counter() - began) * 1000, usage.ru_maxrss

    def measured(self, rounds, *words, prepare=lambda: "", code=0):
        """The median time and the largest memory of several runs."""
        times, memory = [], 0
        for _ in range(rounds):
            text = prepare()
            status, _, taken, most = self.run(*words, text=text)
            if status != code:
                raise Failed(f"bearer {' '.join(words)} exited with {status}")
            times.append(taken)
            memory = max(memory, most)
        return statistics.median(times), memory

    def sign_in(self):
        return self.measured(1, "login", "--username", "user", "work", prepare=lambda: PASSWORD)

    def token(self):
        return self.run("token", "work")[1]


def together(bench, count):
    """The time of `count` processes at once whose token has expired, and the number of their refreshes."""
    bench.control(reset=True, access_token_lifetime=1)
    bench.sign_in()
    time.sleep(1.1)
    bench.control(access_token_lifetime=3600)
    began = time.perf_counter()
    processes = [subprocess.Popen([bench.bearer, "token", "work"], env=bench.environment, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) for _ in range(count)]
    if any([process.wait(60) for process in processes]):
        raise Failed("not every process got a token")
    return (time.perf_counter() - began) * 1000, bench.control()["grants"].get("refresh_token", 0)


def measure(binaries, folder, rounds):
    rows = []
    with Bench(binaries, folder) as bench:
        def row(name, measured, note=""):
            print(f"bench: {name}", file=sys.stderr)
            rows.append((name, measured[0], measured[1], note))

        row("sign-in with a browser", bench.measured(rounds, "login", "work"), "curl plays the browser")
        row("sign-in with a password", bench.measured(
            rounds, "login", "--username", "user", "work", prepare=lambda: PASSWORD))
        row("token from the store", bench.measured(rounds, "token", "work"), "sends nothing")
        row("refresh", bench.measured(rounds, "token", "work", "--rejected", "-", prepare=bench.token))
        row("status", bench.measured(rounds, "status"), "sends nothing")
        bench.control(fault="large_token")
        row("sign-in, tokens of 64 KiB", bench.measured(rounds, "login", "work"))
        row("token of 64 KiB from the store", bench.measured(rounds, "token", "work"))
        bench.control(reset=True, delay_ms=200)
        row("sign-in, each answer after 200 ms", bench.measured(3, "login", "work"),
            "discovery, authorization, keys, tokens")
        row("refresh, each answer after 200 ms", bench.measured(
            3, "token", "work", "--rejected", "-", prepare=bench.token), "discovery, tokens, keys")
        bench.control(reset=True)
        taken, refreshes = together(bench, 100)
        rows.append(("100 processes at expiry", taken, 0, f"{refreshes} refresh"))
    row = bench.measured(3, "login", "work", code=69)
    rows.append(("sign-in, no provider listens", row[0], row[1], "exit code 69"))
    return rows


def table(rows):
    lines = ["| bearer, release build | median | memory, at most | |", "|---|---|---|---|"]
    for name, taken, memory, note in rows:
        lines.append(f"| {name} | {taken:,.0f} ms | {f'{memory / 1024:.0f} MiB' if memory else ''} | {note} |")
    return "\n".join(lines)
