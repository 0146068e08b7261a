"""Compares the project's decoders with independent implementations. Called by scripts/fuzz differential.

Sends each case to the program (its command `verdicts`) and to a model in Python: cbor2 decodes CBOR, cryptography
decodes certificates and verifies signatures. Verdicts and parsed values must be equal. An intended difference is a
separate rule of the model, with its reason. The same seed produces the same cases, except for the random part of ECDSA
signatures.
"""

import argparse
import random
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import android_cases  # noqa: E402
import cbor_cases  # noqa: E402
import chain_cases  # noqa: E402

BATCH = 100


def answers(program, lines):
    """Returns the program's answer to each line."""
    run = subprocess.run([program, "verdicts"], input="\n".join(lines) + "\n", capture_output=True, text=True)
    found = run.stdout.splitlines()
    if run.returncode != 0 or len(found) != len(lines):
        # The input at which the program stopped is the finding.
        culprit = lines[len(found)] if len(found) < len(lines) else "-"
        sys.exit(f"error: the program exited with status {run.returncode} at: {culprit}\n{run.stderr[-4000:]}")
    return found


def compare(program, cases):
    """Prints the differences in `cases` (lines with the model's verdicts). Returns the numbers of differences and of
    accepted cases."""
    differences, accepted = 0, 0
    for (line, expected), found in zip(cases, answers(program, [line for line, _ in cases])):
        # Reasons for refusals differ in wording, so they are compared only where the model has words for them.
        is_whole = found.startswith("accepted") or " " in expected.verdict
        found_verdict = found if is_whole else found.partition(" ")[0]
        accepted += found_verdict.startswith("accepted")
        if found_verdict != expected.verdict:
            differences += 1
            print(f"difference: {line}\n  sallyport: {found}\n  model:     {expected.verdict} ({expected.reason})")
    return differences, accepted


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failed = False
    kinds = [("CBOR", cbor_cases.cases), ("certificate chains", chain_cases.cases),
             ("Android chains", android_cases.cases)]
    for name, make in kinds:
        source = make(random.Random(options.seed))
        end = time.monotonic() + options.seconds / len(kinds)
        differences = accepted = count = 0
        while time.monotonic() < end and differences < 20:
            batch = [next(source) for _ in range(BATCH)]
            found = compare(options.program, batch)
            count += len(batch)
            differences += found[0]
            accepted += found[1]
        print(f"differential: {count} cases of {name} with seed {options.seed}, {accepted} accepted, "
              f"{differences} differences")
        # If nearly all cases are refused, or nearly all accepted, the comparison proves nothing.
        if differences or not count // 20 < accepted < count - count // 20:
            failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
