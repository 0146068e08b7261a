"""Installs missing Debian packages that the benchmark needs."""

import os
import pathlib
import subprocess

from processes import Failed

SETUP = pathlib.Path(__file__).resolve().parents[1] / "setup"


def install(wanted):
    """Installs missing packages of `wanted` and those of the build. Servers are neither started nor enabled."""
    # Debian installs servers here, which is often not in PATH.
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if subprocess.run([SETUP, *wanted]).returncode != 0:
        raise Failed(f"missing packages: {' '.join(wanted)}")
