"""The few lines of C that stand beside these files, compiled for one run."""

import pathlib
import shutil
import subprocess

from processes import Failed


def compiled(folder, name, suffix, *options):
    """The path of what `name`.c is compiled to in `folder`."""
    compiler = shutil.which("cc") or shutil.which("clang")
    if not compiler:
        raise Failed(f"there is neither cc nor clang, which {name}.c is compiled with")
    result = folder / f"{name}{suffix}"
    source = pathlib.Path(__file__).with_name(f"{name}.c")
    subprocess.run([compiler, "-O2", "-o", result, source, *options], check=True)
    return str(result)
