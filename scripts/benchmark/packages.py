"""Installs missing Debian packages that the benchmark needs."""

import os
import shutil
import subprocess
import sys

from processes import Failed

SERVICES = {"nginx", "haproxy"}


def install(wanted):
    """Installs missing packages of `wanted`; package and program names are equal. Never prompts without a terminal."""
    # Debian installs servers here, which is often not in PATH.
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [name for name in wanted if not shutil.which(name)]
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise Failed(f"missing: {' '.join(missing)}, and this system has no apt-get")
    print(f"bench: installing {' '.join(missing)}", file=sys.stderr)
    if not shutil.which("sudo") and os.geteuid() != 0:
        raise Failed(f"sudo is not available; run as root: apt-get install {' '.join(missing)}")
    try:
        _as_root("apt-get", "update", "-qq")
    except Failed:
        print("bench: cannot update the package lists; using the old ones", file=sys.stderr)
    _as_root("apt-get", "install", "-y", "-qq", "-o", "Dpkg::Use-Pty=0", "--no-install-recommends", *missing)
    for name in missing:
        if not shutil.which(name):
            raise Failed(f"apt-get installed {name}, but it is still not found")
        if name in SERVICES and os.path.isdir("/run/systemd/system"):
            # Debian starts an installed server; stop it, because the benchmark starts its own.
            _as_root("systemctl", "disable", "--quiet", "--now", name)


def _as_root(*command):
    prefix = [] if os.geteuid() == 0 else ["sudo"] if sys.stdin.isatty() else ["sudo", "-n"]
    environment = ["env", "DEBIAN_FRONTEND=noninteractive"]
    result = subprocess.run([*prefix, *environment, *command], stdin=None if prefix else subprocess.DEVNULL,
                            stdout=sys.stderr)
    if result.returncode != 0:
        raise Failed(f"{' '.join(command)} failed: run it as root")
