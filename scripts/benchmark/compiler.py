"""Compiles the C files in this folder for one run."""

import pathlib
import shutil
import subprocess

from processes import Failed


def compiled(folder, name, suffix, *options):
    """Compiles `name`.c in `folder` and returns the path of the result."""
    compiler = shutil.which("cc") or shutil.which("clang")
    if not compiler:
        raise Failed(f"neither cc nor clang found: one is required to compile {name}.c")
    result = folder / f"{name}{suffix}"
    source = pathlib.Path(__file__).with_name(f"{name}.c")
    subprocess.run([compiler, "-O2", "-o", result, source, *options], check=True)
    return str(result)
