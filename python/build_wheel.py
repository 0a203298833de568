"""Builds the wheel: the package with the mobula executable inside.

    python build_wheel.py EXECUTABLE DIRECTORY

The executable tells the wheel's version and platform. The wheel is built in a copy of the source, so that no files stay in the
work tree. It needs setuptools and pip, but no network. It prints the wheel's path.
"""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MACHINES = {"linux/amd64": "linux_x86_64", "linux/arm64": "linux_aarch64"}


def python_version(said: str) -> str:
    """Converts the executable's version for Python: v0.2.0 to 0.2.0, v0.2.0-devel to 0.2.0.dev0."""
    found = re.fullmatch(r"v(\d+\.\d+\.\d+)(-devel)?", said)
    if found is None:
        raise ValueError(f"the executable says that its version is {said!r}: want v1.2.3, or v1.2.3-devel")
    return found[1] + (".dev0" if found[2] else "")


def build(executable: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    """Builds the wheel of an executable into a directory, and returns its path."""
    about = json.loads(subprocess.check_output([executable, "version", "--json"]))
    version = python_version(about["mobula"])
    platform = MACHINES.get(about["platform"])
    if platform is None:
        raise ValueError(f"{executable} is for {about['platform']}: there are wheels for {', '.join(MACHINES)}")
    with tempfile.TemporaryDirectory(prefix="mobula-wheel-") as name:
        stage = pathlib.Path(name)
        shutil.copytree(HERE / "mobula", stage / "mobula", ignore=shutil.ignore_patterns("__pycache__", "bin"))
        for file in (HERE / "pyproject.toml", HERE / "README.md", HERE.parent / "LICENSE"):
            shutil.copy(file, stage)
        source = stage / "mobula" / "_version.py"
        text, n = re.subn(r'(?m)^VERSION = ".*"$', f'VERSION = "{version}"', source.read_text())
        if n != 1 or f'RELEASE = "{version.removesuffix(".dev0")}"' not in text:
            raise ValueError(f"{executable} is of release {version}, and the package is not: build both from the same source")
        source.write_text(text)
        (stage / "mobula" / "bin").mkdir()
        shutil.copy(executable, stage / "mobula" / "bin" / "mobula")
        made = stage / "dist"
        subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps",
                        "--no-build-isolation", f"--config-settings=--build-option=--plat-name={platform}",
                        f"--wheel-dir={made}", stage], check=True)
        wheel, = made.iterdir()
        out.mkdir(parents=True, exist_ok=True)
        return pathlib.Path(shutil.copy(wheel, out))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        print(build(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
    except (ValueError, OSError, subprocess.CalledProcessError) as x:
        sys.exit(f"build_wheel: {x}")
