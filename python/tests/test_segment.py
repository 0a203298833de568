"""Files beside the segment are mapped when the node announces them, and unmapped when they are removed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Iterator

import pytest

from mobula._segment import PAGE, Segment
from mobula._wire.messages import Extent
from mobula.exceptions import ProtocolError


@pytest.fixture
def segment(tmp_path: Path) -> Iterator[Segment]:
    fd = os.memfd_create("segment")
    os.ftruncate(fd, PAGE)
    s = Segment(fd, PAGE)
    os.close(fd)
    path = tmp_path / "beside"
    path.write_bytes(b"x" * PAGE)
    fd = os.open(path, os.O_RDWR)
    s.add(7, fd, PAGE)
    os.close(fd)
    yield s
    s.close()


def uses(path: Path) -> list[str]:
    """Mappings and descriptors of a file that this process has."""
    with open("/proc/self/maps") as f:
        maps = [line for line in f if str(path) in line]
    for fd in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{fd}").startswith(str(path)):
                maps.append(fd)
        except OSError:
            pass  # the one of the directory
    return maps


def test_a_file_that_is_gone_is_unmapped(segment: Segment, tmp_path: Path) -> None:
    assert bytes(segment.view(Extent(7, 0, 3), 3, None)) == b"xxx"
    assert uses(tmp_path / "beside")
    segment.drop(7)
    assert uses(tmp_path / "beside") == []
    with pytest.raises(ProtocolError, match="not announced"):
        segment.view(Extent(7, 0, 3), 3, None)
    segment.drop(7)
    segment.drop(8)
    segment.drop(0)  # the segment stays
    assert bytes(segment.view(Extent(0, 0, 1), 1, None)) == b"\0"


def test_values_that_outlive_the_node_stay_when_their_file_goes(segment: Segment, tmp_path: Path) -> None:
    view = segment.view(Extent(7, 0, 3), 3, None)
    segment.detach(Extent(7, 0, 3))
    segment.drop(7)
    (tmp_path / "beside").write_bytes(b"y" * PAGE)
    assert bytes(view) == b"xxx"
