"""Brings CPython's tests of concurrent.futures where the interpreter came without them.

    python tests/suites/bring.py                # make python does so

They go to testsuite/ of the interpreter's prefix, its virtual environment. Debian has them as a package, which is unpacked and
not installed.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PLACE = pathlib.Path(sys.prefix) / "testsuite"
NAME = "test_concurrent_futures"


def is_here() -> bool:
    """Whether the tests can be imported: of the interpreter, or from PLACE."""
    return importlib.util.find_spec(f"test.{NAME}") is not None or any(PLACE.glob(f"{NAME}*"))


def bring() -> str:
    """Tries to bring them; gives what is missing, "" if nothing is."""
    version = "%d.%d" % sys.version_info[:2]
    package = f"libpython{version}-testsuite"
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        return f"this Python came without test.{NAME}, and there is no apt-get to take it from Debian's package {package}"
    with tempfile.TemporaryDirectory() as folder:
        why = _download(package, folder)
        if why:
            return why
        found = list(pathlib.Path(folder).glob("*.deb"))
        subprocess.run(["dpkg-deb", "-x", str(found[0]), folder], check=True)
        tests = list(pathlib.Path(folder, "usr", "lib", f"python{version}", "test").glob(f"{NAME}*"))
        if not tests:
            return f"Debian's package {package} has no {NAME}"
        PLACE.mkdir(exist_ok=True)
        for path in tests:
            shutil.move(str(path), PLACE / path.name)
    return ""


def _download(package: str, folder: str) -> str:
    get = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package]
    said = subprocess.run(get, cwd=folder, capture_output=True, text=True)
    if said.returncode != 0 and os.geteuid() == 0:  # the lists of a new machine are empty or old
        subprocess.run(["apt-get", "-q", "update"], capture_output=True)
        said = subprocess.run(get, cwd=folder, capture_output=True, text=True)
    return "" if said.returncode == 0 else f"Debian's package {package} could not be downloaded: {said.stderr.strip()}"


if __name__ == "__main__":
    missing = "" if is_here() else bring()
    if missing:
        print(f"{missing}; the tests that need them are skipped, and fail in CI", file=sys.stderr)
        sys.exit(1 if os.environ.get("CI") or os.environ.get("REQUIRE_PYTHON") else 0)
