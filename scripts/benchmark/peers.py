#!/usr/bin/env python3
"""Measures how fast pyattest and swift-certificates verify the attestation that gate-bench verifies.

  swift build -c release --product gate-bench && scripts/benchmark/peers.py

Each verifies one simulated attestation repeatedly, on one thread. pyattest checks the chain, the nonce, the key id, the
app, the counter, the environment and the credential id. gate-bench checks the same, and the credential's key and the
receipt with its own signature and chain. swift-certificates verifies only chains, so it is compared with gate-bench's
chain verification. Installs pyattest into .build/peers and builds swift-certificates in .build/certificates.
"""
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / ".build/release/gate-bench"
ENVIRONMENT = ROOT / ".build/peers"
CERTIFICATES = ROOT / ".build/certificates"
SECONDS = 5.0
VERSION = "1.0.5"


def measure(folder: Path) -> dict:
    """Runs inside the virtual environment with pyattest."""
    import asyncio
    import base64
    import resource
    import time

    import cbor2
    from pyattest.attestation import Attestation
    from pyattest.configs.apple import AppleConfig

    claim = json.loads((folder / "claim.json").read_text())
    config = AppleConfig(
        key_id=base64.b64decode(claim["key_id"]),
        app_id=claim["app_id"],
        production=False,
        root_ca=(folder / "root.pem").read_bytes(),
    )
    raw, nonce = (folder / "attestation.cbor").read_bytes(), bytes.fromhex(claim["nonce"])
    # For swift-certificates, which cannot read CBOR.
    for name, der in zip(("leaf", "intermediate"), cbor2.loads(raw)["attStmt"]["x5c"]):
        (folder / f"{name}.der").write_bytes(der)

    def cpu() -> float:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    async def run() -> dict:
        await Attestation(raw, nonce, config).verify()
        count, start, used = 0, time.monotonic(), cpu()
        while time.monotonic() - start < SECONDS:
            await Attestation(raw, nonce, config).verify()
            count += 1
        used = cpu() - used
        return {"operations": count, "cpu_us": used * 1e6 / count, "per_second_and_core": count / used}

    return asyncio.run(run())


def install() -> Path:
    """Returns the interpreter of a virtual environment with pyattest."""
    python = ENVIRONMENT / "bin/python"
    if not python.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", f"pyattest=={VERSION}"], check=True)
    return python


def swift_certificates(folder: str) -> dict:
    package = ["--package-path", ROOT / "scripts/benchmark/certificates", "--scratch-path", CERTIFICATES]
    subprocess.run(
        ["swift", "build", "-c", "release", *package], check=True, stdout=sys.stderr)
    command = [CERTIFICATES / "release/certificates", folder, str(SECONDS)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def ours(*arguments: str) -> dict:
    command = [BENCH, "verifications", "--json", "--seconds", str(SECONDS), *arguments]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compare() -> None:
    if not os.access(BENCH, os.X_OK):
        sys.exit("error: gate-bench is not built\nhint: run swift build -c release --product gate-bench")
    python = install()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([BENCH, "mint", folder], check=True)
        output = subprocess.run([python, __file__, folder], check=True, capture_output=True, text=True).stdout
        chains = swift_certificates(folder)
    rows = {
        "gate, attestation with receipt": ours(),
        "gate, chain alone": ours("--part", "chain"),
        f"pyattest {VERSION}": json.loads(output),
        "swift-certificates, chain alone": chains,
    }
    print(f"{'verifier':<32}{'per second and core':>20}{'us of CPU':>12}")
    for name, row in rows.items():
        print(f"{name:<32}{row['per_second_and_core']:>20.0f}{row['cpu_us']:>12.0f}")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        print(json.dumps(measure(Path(sys.argv[1]))))
    else:
        compare()
