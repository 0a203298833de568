"""Files that other users have put into shared directories are refused, without waiting for them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE

from mobula import _safefs
from mobula.exceptions import PermissionDeniedError

STRANGER = 65533


def test_the_users_directory_is_the_users_own(tmp_path: Path) -> None:
    _safefs.make_dir(str(tmp_path / "ours"))
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == 0o700
    _safefs.make_dir(str(tmp_path / "ours"))
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", STRANGER, STRANGER)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "ours")
    os.mkfifo(tmp_path / "fifo")
    for name in ("theirs", "open", "link", "fifo"):
        with pytest.raises(PermissionDeniedError, match=name):
            _safefs.make_dir(str(tmp_path / name))


def test_a_file_in_the_way_is_refused_untouched(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "link").symlink_to(victim)
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo"):
        with pytest.raises(PermissionDeniedError, match=name):
            _safefs.open_file(str(tmp_path / name), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    assert victim.read_text() == "precious"


def test_a_start_does_not_wait_for_a_fifo(tmp_path: Path) -> None:
    dead = tmp_path / "node-1073741824-x"  # above every process id
    dead.mkdir()
    os.mkfifo(dead / "node.lock")
    code = f"from mobula import _node; _node._clean_dead({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", code], timeout=PATIENCE, check=True)
