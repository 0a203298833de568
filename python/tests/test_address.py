"""Where a program finds its node."""

import os

import pytest

from mobula import _node


def test_auto_is_the_node_that_the_environment_names(monkeypatch: pytest.MonkeyPatch, tmp_path: "os.PathLike[str]") -> None:
    monkeypatch.delenv("MOBULA_ADDRESS", raising=False)
    monkeypatch.delenv("MOBULA_DIR", raising=False)
    assert _node.socket_of("auto") == _node.default_address()
    monkeypatch.setenv("MOBULA_DIR", "/d")
    assert _node.socket_of("auto") == "/d/node.sock"
    monkeypatch.setenv("MOBULA_ADDRESS", str(tmp_path))
    assert _node.socket_of("auto") == os.path.join(str(tmp_path), "node.sock")
    assert _node.socket_of("/s.sock") == "/s.sock"
