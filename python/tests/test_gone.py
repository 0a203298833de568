"""A process counts as gone only if it has ended, not if this one may not ask."""

from __future__ import annotations

import errno
import json
import os
import select
import socket
import threading
from typing import Any, Mapping

import pytest
from waiting import PATIENCE

from mobula import _node, _template


def _answers(sock: socket.socket, n: int) -> list[dict[str, Any]]:
    out = []
    ready = select.poll()
    ready.register(sock, select.POLLIN)
    while len(out) < n and ready.poll(1000 * PATIENCE):
        out.append(json.loads(sock.recv(1 << 16)))
    return out


def test_a_template_keeps_a_child_of_which_it_has_no_pidfd(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    def child(self: _template.Template, parent: int, env: Mapping[str, str], out: int, err: int) -> int:
        os.setpgid(0, 0)
        return 3

    monkeypatch.setattr(os, "pidfd_open", fails)
    monkeypatch.setattr(_template.Template, "child", child)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        template = _template.Template(theirs)
        monkeypatch.setattr(template, "end", lambda: None)
        template.fork(7, {}, 1, 2)
        served = threading.Thread(target=template.serve)
        served.start()
        forked, exited = _answers(ours, 2)
        ours.shutdown(socket.SHUT_WR)
        served.join(PATIENCE)
        assert not served.is_alive()
    assert forked["op"] == "forked" and forked["id"] == 7
    assert (exited["op"], exited["id"], exited["pid"], exited["status"]) == ("exited", 7, forked["pid"], 3)
    with pytest.raises(ChildProcessError):
        os.waitpid(forked["pid"], os.WNOHANG)


def test_a_process_is_not_gone_because_proc_does_not_show_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(os.path, "exists", lambda _: False)  # another user's processes, where /proc hides them
    left = tmp_path / f"node-{os.getpid()}-x"
    left.mkdir()
    _node._clean_dead(str(tmp_path))
    assert left.is_dir()
