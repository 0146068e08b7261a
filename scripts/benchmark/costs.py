"""Measures the most expensive request to each public endpoint of the gate and the MFA backend, in instructions."""

import subprocess
import sys

from compiler import compiled
from processes import Failed

# The instructions of the most expensive request to an endpoint, in those of an ordinary one.
GREATEST_RATIO = 20


def are_too_high(bench):
    """Prints what the most expensive input of each public endpoint costs. Returns whether one costs too much."""
    failed, ordinary, worst = False, {}, {}
    for endpoint, name, instructions in [*_gate(bench), *_backend(bench)]:
        if name == "ordinary":
            ordinary[endpoint] = instructions
        elif instructions > worst.get(endpoint, (0, ""))[0]:
            worst[endpoint] = instructions, name
    for endpoint, (instructions, name) in worst.items():
        ratio = instructions / ordinary[endpoint]
        verdict = "ok" if ratio <= GREATEST_RATIO else "TOO MANY"
        failed = failed or ratio > GREATEST_RATIO
        print(f"{endpoint:33} {ordinary[endpoint]:12,.0f} instructions, at most {ratio:5.2f} times as many ({name}), "
              f"allowed {GREATEST_RATIO}: {verdict}")
    if failed:
        print("error: a request of an unknown sender costs too much: see \"What a request may cost\" in Limits.md",
              file=sys.stderr)
    return failed


def _gate(bench, count=5):
    """Yields endpoint, input and instructions per request. callgrind writes a profile at each mark of gate-bench."""
    profile = bench.folder / "costs"
    output = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", "--dump-before=*markCosts*",
         _stripped(bench, "gate-bench"), "costs", "--count", str(count)],
        check=True, capture_output=True, text=True).stdout
    return _instructions(output, profile, count)


def _backend(bench, count=5):
    """Yields operation, input and instructions per request. mfa-bench lets callgrind write profiles of mfa-backend."""
    profile = bench.folder / "backend-costs"
    run = subprocess.run(
        [bench.binaries / "mfa-bench", "--folder", bench.folder, "--program", _stripped(bench, "mfa-backend"),
         "--costs", profile, "--count", str(count), "--preload",
         compiled(bench.folder, "sigsuspend", ".so", "-shared", "-fPIC")], capture_output=True, text=True)
    if run.returncode != 0:
        raise Failed(f"mfa-bench --costs exited with {run.returncode}:\n{run.stdout}{run.stderr}")
    return _instructions(run.stdout, profile, count)


def _stripped(bench, name):
    """A copy of a program that callgrind loads quickly."""
    copy = bench.folder / name
    subprocess.run(["strip", "--strip-debug", "-o", copy, bench.binaries / name], check=True)
    return copy


def _instructions(output, profile, count):
    for number, line in enumerate(output.splitlines()):
        endpoint, _, name = line.partition("\t")
        # The first profile is of what came before the first mark, and every second one of making the requests.
        total, _ = profiled(profile.with_name(f"{profile.name}.{2 * number + 2}"))
        if total is None:
            raise Failed(f"callgrind wrote no profile of {endpoint} with {name}")
        yield endpoint, name, total / count


def profiled(profile, own_objects=()):
    """Reads a profile of callgrind. Returns all instructions, and those of the objects whose names
    begin with one of `own_objects`.

    A line of costs belongs to the object that was named last. The line after `calls=` repeats the costs of what was
    called.
    """
    names, total, own, is_own, is_call = {}, None, 0, False, False
    with profile.open(errors="replace") as lines:
        for line in lines:
            first = line[:1]
            if first.isdigit() or first in "+-*":
                if is_own and not is_call:
                    own += int(line.rsplit(None, 1)[1])
                is_call = False
            elif line.startswith("ob="):
                number, _, name = line[3:].strip().partition(" ")
                if name:
                    names[number] = name.rpartition("/")[2].startswith(own_objects)
                is_own = names[number]
            elif line.startswith("cob="):
                number, _, name = line[4:].strip().partition(" ")
                if name:
                    names[number] = name.rpartition("/")[2].startswith(own_objects)
            elif line.startswith("calls="):
                is_call = True
            elif line.startswith(("summary:", "totals:")) and total is None:
                total = int(line.split()[1])
    return total, own
