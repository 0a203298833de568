"""The wheel, installed as by a user, with the executable inside."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import venv
from typing import Any

import pytest
from waiting import PATIENCE

import build_wheel


class Installed:
    """A virtual environment with the wheel, and nothing else of its own."""

    def __init__(self, binary: str, place: pathlib.Path) -> None:
        self.place = place
        self.wheel = build_wheel.build(pathlib.Path(binary), place)
        venv.create(place / "env", symlinks=True)
        self.python = place / "env" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "pip", "--python", self.python, "install", "-q", "--disable-pip-version-check", "--no-index", "--no-deps",
                        self.wheel], check=True)

    def run(self, *args: str) -> Any:
        """What a program prints, as JSON. What the package depends on is found where these tests find it."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("MOBULA_")}
        env |= {"PATH": "/usr/bin:/bin", "PYTHONPATH": sysconfig.get_path("purelib")}
        return json.loads(subprocess.run([self.python, *args], env=env, cwd=self.place, check=True, capture_output=True, timeout=PATIENCE).stdout)


@pytest.fixture(scope="module")
def installed(binary: str, tmp_path_factory: Any) -> Installed:
    return Installed(binary, tmp_path_factory.mktemp("wheel"))


def test_its_name_says_what_it_is(installed: Installed, binary: str) -> None:
    about = json.loads(subprocess.check_output([binary, "version", "--json"]))
    version, platform = build_wheel.python_version(about["mobula"]), build_wheel.MACHINES[about["platform"]]
    assert installed.wheel.name == f"mobula-{version}-py3-none-{platform}.whl"
    said = installed.run("-c", "import json, mobula; from importlib.metadata import version; print(json.dumps([mobula.__version__, version('mobula')]))")
    assert said == [version, version]


@pytest.mark.parametrize("workers", ["template", "fresh"])
def test_a_task_runs(installed: Installed, workers: str) -> None:
    program = (
        "import json, sys, mobula\n"
        "from mobula import _node\n"
        "@mobula.remote\n"
        "def where(x):\n"
        "    return x, mobula.__file__, sys.prefix\n"
        f"with mobula.init(num_cpus=1, worker_processes={workers!r}):\n"
        "    print(json.dumps([_node.binary(), *mobula.get(where.remote(7))]))\n")
    env = installed.place / "env"
    binary, x, package, prefix = installed.run("-c", program)
    assert x == 7 and prefix == str(env)
    assert pathlib.Path(package).is_relative_to(env) and pathlib.Path(binary) == pathlib.Path(package).parent / "bin" / "mobula"


def test_the_commands(installed: Installed, binary: str) -> None:
    assert installed.run("-m", "mobula", "version", "--json") == json.loads(subprocess.check_output([binary, "version", "--json"]))


@pytest.mark.parametrize("about, said", [
    ({"mobula": "v9.9.9", "platform": "linux/amd64"}, "of release 9.9.9, and the package is not"),
    ({"mobula": "v0.2.0", "platform": "plan9/mips"}, "for plan9/mips"), ({"mobula": "newest", "platform": "linux/amd64"}, "'newest': want v1.2.3")])
def test_executables_that_do_not_fit(tmp_path: pathlib.Path, about: dict[str, str], said: str) -> None:
    executable = tmp_path / "mobula"
    executable.write_text(f"#!/bin/sh\necho '{json.dumps(about)}'\n")
    executable.chmod(0o755)
    with pytest.raises(ValueError, match=said):
        build_wheel.build(executable, tmp_path / "dist")
    assert not (tmp_path / "dist").exists()
