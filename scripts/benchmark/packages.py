"""Debian packages that the benchmark needs, installed if they are missing."""

import os
import shutil
import subprocess
import sys

from processes import Failed

SERVICES = {"nginx", "haproxy"}


def install(wanted):
    """Installs those of `wanted` that are missing; each is named as its program is. Never prompts without a terminal."""
    # Where Debian keeps servers, which is not on everyone's PATH.
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [name for name in wanted if not shutil.which(name)]
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise Failed(f"not there: {' '.join(missing)}, and this system has no apt-get")
    print(f"bench: installing {' '.join(missing)}", file=sys.stderr)
    if not shutil.which("sudo") and os.geteuid() != 0:
        raise Failed(f"installing needs root, and there is no sudo; as root: apt-get install {' '.join(missing)}")
    try:
        _as_root("apt-get", "update", "-qq")
    except Failed:
        print("bench: the package lists could not be brought up to date; going on with the old ones", file=sys.stderr)
    _as_root("apt-get", "install", "-y", "-qq", "-o", "Dpkg::Use-Pty=0", "--no-install-recommends", *missing)
    for name in missing:
        if not shutil.which(name):
            raise Failed(f"apt-get installed {name}, and it is still not found")
        if name in SERVICES and os.path.isdir("/run/systemd/system"):
            # Debian starts a server that it installs; nobody asked for that one.
            _as_root("systemctl", "disable", "--quiet", "--now", name)


def _as_root(*command):
    prefix = [] if os.geteuid() == 0 else ["sudo"] if sys.stdin.isatty() else ["sudo", "-n"]
    environment = ["env", "DEBIAN_FRONTEND=noninteractive"]
    result = subprocess.run([*prefix, *environment, *command], stdin=None if prefix else subprocess.DEVNULL,
                            stdout=sys.stderr)
    if result.returncode != 0:
        raise Failed(f"{' '.join(command)} failed: run it as root")
