"""scripts/bench --mfa: sign-ins and reads of the MFA backend on one core, with both databases."""

import re
import subprocess
import sys

from processes import Failed

RUNS = (
    ("sign-ins, SQLite", "--store", "sqlite"),
    ("sign-ins, PostgreSQL", "--store", "postgres"),
    # With as many clients for each backend as for one alone.
    ("sign-ins, PostgreSQL, two backends", "--store", "postgres", "--backends", "2", "--clients", "400"),
    ("reads, SQLite", "--store", "sqlite", "--reads"),
    ("reads, PostgreSQL", "--store", "postgres", "--reads"),
)
# A sign-in has two requests; each should end within 150 ms.
STOPS = ("--store", "postgres", "--backends", "2", "--clients", "12", "--stops")
RESULT = re.compile(r"(\d+) \S+ in [\d.]+ s: ([\d.]+) a second; ([\d.]+) a second of the backend's CPU time")


def measure(binaries, folder, seconds):
    """Runs `mfa-bench` once for each row. Returns titles with their counts a second of time, and of CPU time."""
    results = []
    for title, *options in RUNS:
        run = subprocess.run(
            [binaries / "mfa-bench", "--folder", folder, "--seconds", str(seconds), *options],
            capture_output=True, text=True)
        found = RESULT.search(run.stdout)
        if run.returncode != 0 or not found or found[1] == "0":
            raise Failed(f"{title}: mfa-bench exited with {run.returncode}:\n{run.stdout}{run.stderr}")
        results.append((title, float(found[2]), float(found[3])))
        print(f"bench: {title}", file=sys.stderr, flush=True)
    return results


def measure_stops(binaries, folder, seconds):
    """Returns a line about sign-ins at one backend while another one is stopped again and again."""
    run = subprocess.run(
        [binaries / "mfa-bench", "--folder", folder, "--seconds", str(seconds), *STOPS], capture_output=True, text=True)
    if run.returncode != 0:
        raise Failed(f"stopped backend: mfa-bench exited with {run.returncode}:\n{run.stdout}{run.stderr}")
    return run.stdout.strip()


def table(results):
    lines = [f"{'':36}{'a second':>12}{'a second of CPU':>18}"]
    lines += [f"{title:36}{rate:12,.0f}{per_core:18,.0f}" for title, rate, per_core in results]
    return "\n".join(lines)
