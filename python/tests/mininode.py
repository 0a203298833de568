"""A node of a few hundred lines, for tests: it speaks the protocol, schedules without care, and forgets nothing.

It stands in for the real one where that has nothing to add: a driver's and a worker's behaviour message by message.
"""

from __future__ import annotations

import array
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from typing import Any, Optional

import cbor2
from waiting import PATIENCE

from mobula import _ids
from mobula._version import RELEASE
from mobula._wire import codec
from mobula._wire import messages as m
from mobula.exceptions import ObjectFreedError

SEGMENT = 64 << 20


class Peer:
    """A client's connection."""

    def __init__(self, node: MiniNode, sock: socket.socket, hello: m.Hello, id: int) -> None:
        self.node = node
        self.sock = sock
        self.hello = hello
        self.id = id
        self.lock = threading.Lock()
        self.got: list[Any] = []  # every message, in order
        self.handles: set[bytes] = set()
        self.pins: dict[bytes, int] = {}
        self.running: dict[bytes, m.TaskSpec] = {}
        self.actor = b""
        self.worker = 0  # the template's number
        self.blocked = False

    def send(self, *messages: Any) -> None:
        try:
            with self.lock:
                self.sock.sendall(codec.frame(*messages))
        except OSError:
            pass  # it is gone


class MiniNode:
    def __init__(self, cpus: int = 2, inline: int = 100 << 10, credit: int = 0, release: str = RELEASE) -> None:
        self.cpus = cpus
        self.inline = inline
        self.credit = credit
        self.release = release
        self.dir = tempfile.mkdtemp(prefix="mini")
        self.path = os.path.join(self.dir, "node.sock")
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.peers: dict[int, Peer] = {}
        self.objects: dict[bytes, tuple[m.Result, Optional[m.Extent]]] = {}
        self.asking: dict[bytes, list[tuple[Peer, bool]]] = {}
        self.streams: dict[bytes, tuple[dict[int, m.Result], list[Any], dict[int, list[Peer]]]] = {}
        self.ready: list[m.TaskSpec] = []
        self.waiting: list[m.TaskSpec] = []
        self.names: dict[str, bytes] = {}
        self.actor_at: dict[bytes, Peer] = {}
        self.dead_actors: set[bytes] = set()
        self.early: dict[bytes, list[m.TaskSpec]] = {}
        self.for_actor: list[m.TaskSpec] = []
        self.fresh: dict[int, m.TaskSpec] = {}
        self.exited: dict[int, dict[str, Any]] = {}
        self.pids: dict[int, int] = {}
        self.answers: list[dict[str, Any]] = []
        self.next = 0
        self.used = 64
        self.lease = 0
        self.starting = 0
        self.fd = os.memfd_create("mini")
        os.ftruncate(self.fd, SEGMENT)
        self.template: Optional[subprocess.Popen[bytes]] = None
        self.control: Optional[socket.socket] = None
        self.closed = False
        self.away: set[bytes] = set()  # objects whose bytes are on another node, until bring is called
        self.silent = False  # accepts nothing for a while
        self.room = True  # false: who asks for some waits
        self.creates: list[tuple[Peer, m.Create]] = []
        self.listen()

    # ---- connections

    def listen(self) -> None:
        self.server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.server.bind(self.path)
        self.server.listen(64)
        threading.Thread(target=self._accept, args=(self.server,), daemon=True).start()

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                sock, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _messages(self, sock: socket.socket) -> Any:
        data = b""
        while True:
            part = sock.recv(1 << 20)
            if not part:
                return
            data += part
            while len(data) >= 8:
                _, size = codec.header(data, 0)
                if len(data) < 8 + size:
                    break
                for kind, i, j in codec.split(data, 8, 8 + size):
                    yield codec.decode(m.KINDS[kind], data, i, j)
                data = data[8 + size:]

    def _serve(self, sock: socket.socket) -> None:
        peer: Optional[Peer] = None
        try:
            for msg in self._messages(sock):
                with self.lock:
                    if peer is None:
                        peer = self._welcome(sock, msg)
                    else:
                        peer.got.append(msg)
                        self._take(peer, msg)
                    self.changed.notify_all()
        except OSError:
            pass
        if peer is not None:
            with self.lock:
                self._left(peer)
                self.changed.notify_all()
        sock.close()

    def _welcome(self, sock: socket.socket, h: m.Hello) -> Peer:
        self.next += 1
        if h.client and h.job:
            peer = Peer(self, sock, h, h.client)
            old = self.peers.get(h.client)
            if old is not None:
                peer.handles, peer.got = old.handles, old.got
        else:
            peer = Peer(self, sock, h, self.next)
        self.peers[peer.id] = peer
        if h.role == m.DRIVER and h.program is not None and h.program.args and self.template is None:
            self._start_template(h.program.args)
        w = m.Welcome(version=m.VERSION, client=peer.id, node="mini", job=1, root=_ids.root_task(1, peer.id), segment_size=SEGMENT, inline_max=self.inline,
                      token=b"back", namespace=h.namespace or "default", slots=1, job_dir=self.dir,
                      release=self.release)
        body = codec.message(w)
        if h.role == m.WORKER:
            self.starting -= 1
        try:
            sock.sendmsg([codec.HEADER.pack(b"Mb", 1, 1, len(body)) + body], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [self.fd]))])
        except OSError:  # it has gone before it was welcome
            del self.peers[peer.id]
            raise
        if self.credit:
            peer.send(m.Credit(self.credit))
        if h.role == m.WORKER:
            peer.worker = int.from_bytes(h.token, "big")
            spec = self.fresh.pop(peer.worker, None)
            if spec is not None:
                peer.actor = spec.id
                self.actor_at[spec.id] = peer
                self._push(peer, [spec])
                for call in self.early.pop(spec.id, []):
                    self._push(peer, [call])
            self._schedule()
        return peer

    def _left(self, peer: Peer) -> None:
        if self.peers.get(peer.id) is not peer:
            return
        del self.peers[peer.id]
        for spec in list(peer.running.values()):
            self._fail(spec, m.Error(3 if spec.kind else 2, "the worker is gone"))
        if peer.actor:
            self.dead_actors.add(peer.actor)
            self.actor_at.pop(peer.actor, None)
        self._schedule()

    def drop_all(self) -> None:
        """Every connection breaks."""
        with self.lock:
            for p in list(self.peers.values()):
                p.sock.shutdown(socket.SHUT_RDWR)

    # ---- what clients say

    def _take(self, p: Peer, x: Any) -> None:
        f = getattr(self, "_on_" + type(x).__name__.lower(), None)
        if f is not None:
            f(p, x)

    def _on_putvalue(self, p: Peer, x: m.PutValue) -> None:
        p.handles.add(x.id)
        assert x.value is not None
        self._resolve(x.id, m.Result(m.INLINE, x.value, len(x.value.data)))
        if self.credit:
            p.send(m.Credit(64 + len(x.value.meta) + len(x.value.data)))

    def make_room(self) -> None:
        """Serves those who wait for room."""
        with self.lock:
            self.room = True
            for p, x in self.creates:
                self._on_create(p, x)
            self.creates = []

    def _on_create(self, p: Peer, x: m.Create) -> None:
        if not self.room:
            self.creates.append((p, x))
            return
        at = (self.used + 4095) & ~4095
        if at + x.size > SEGMENT:
            p.send(m.Created(x.req, x.id, None, False, m.Error(6, "full")))
            return
        self.used = at + x.size
        p.send(m.Created(x.req, x.id, m.Extent(0, at, x.size)))
        p.pins.setdefault(b"extent" + x.id, at)

    def _on_seal(self, p: Peer, x: m.Seal) -> None:
        if x.id in self.objects:
            return  # said again by a driver that came back
        at = p.pins.pop(b"extent" + x.id)
        p.handles.add(x.id)
        v = x.value or m.Value()
        self._resolve(x.id, m.Result(m.STORED, m.Value(v.meta, b"", v.refs), x.size), m.Extent(0, at, x.size))

    def _on_abort(self, p: Peer, x: m.Abort) -> None:
        p.pins.pop(b"extent" + x.id, None)

    def _on_get(self, p: Peer, x: m.Get) -> None:
        if x.id in self.objects and not (x.fetch and x.id in self.away):
            self._tell(p, x.id, x.fetch)
        elif _ids.is_put(x.id) and not any(x.id in q.handles for q in self.peers.values()):
            p.send(m.Resolved(x.id, x.fetch, m.Result(m.ERROR, err=m.Error(ObjectFreedError.code, "its last reference was released"))))
        else:
            self.asking.setdefault(x.id, []).append((p, x.fetch))

    def _on_unget(self, p: Peer, x: m.Unget) -> None:
        self.asking[x.id] = [(q, f) for q, f in self.asking.get(x.id, []) if q is not p]

    def _on_addref(self, p: Peer, x: m.AddRef) -> None:
        p.handles.add(x.id)

    def _on_release(self, p: Peer, x: m.Release) -> None:
        for id in x.ids:
            if id == _ids.stream_id(id[:_ids.TASK]):
                self._on_cancel(p, m.Cancel(id[:_ids.TASK]))
                continue
            if id not in p.handles:
                continue  # never heard of: who made it was cut off before it said so
            p.handles.remove(id)
            if id[_ids.TASK:] == bytes(4) and id[:_ids.TASK] in self.actor_at and not any(id in q.handles for q in self.peers.values()):
                self.actor_at[id[:_ids.TASK]].send(m.StopActor(id[:_ids.TASK]), m.Drain())

    def _on_unpin(self, p: Peer, x: m.Unpin) -> None:
        p.pins[x.id] -= x.n
        assert p.pins[x.id] >= 0

    def _on_holdings(self, p: Peer, x: m.Holdings) -> None:
        if x.component == m.OWNER:
            p.handles = {id for id in x.handles if id != _ids.stream_id(id[:_ids.TASK])}
            for g in x.gets:
                self._on_get(p, g)
        else:
            p.pins.update({u.id: u.n for u in x.pins})

    def _on_submit(self, p: Peer, x: m.Submit) -> None:
        s = x.spec
        assert s is not None and s.opts is not None
        for i in range(max(0, s.opts.num_returns)):
            p.handles.add(_ids.return_id(s.id, i))
        if s.opts.num_returns < 0:
            self.streams.setdefault(s.id, ({}, [], {}))
        if s.kind == m.ACTOR_CREATE and s.opts.actor_name:
            if s.opts.actor_name in self.names:
                if s.opts.get_if_exists:
                    self._resolve(_ids.return_id(s.id, 0), m.Result(m.INLINE, m.Value(b"", self.names[s.opts.actor_name]), 16))
                else:
                    self._resolve(_ids.return_id(s.id, 0), m.Result(m.ERROR, err=m.Error(23, s.opts.actor_name)))
                return
            self.names[s.opts.actor_name] = s.id
        self.waiting.append(s)
        if self.credit:
            p.send(m.Credit(512))
        self._schedule()

    def _on_done(self, p: Peer, x: m.Done) -> None:
        s = p.running.pop(x.task, None)
        if s is None:
            return
        assert s.opts is not None
        if x.err is not None:
            self._fail(s, x.err, x.items)
        elif s.opts.num_returns < 0:
            self._end_stream(s.id, x.items, None)
        else:
            assert len(x.results) == s.opts.num_returns
            for i, r in enumerate(x.results):
                id = _ids.return_id(s.id, i)
                if s.kind == m.ACTOR_CREATE:  # its value is the id to call
                    self._resolve(id, m.Result(m.INLINE, m.Value(b"", s.id), len(s.id)))
                elif r.kind == m.STORED:
                    assert id in self.objects
                else:
                    self._resolve(id, r)
        p.blocked = False
        self._schedule()

    def _on_streamitem(self, p: Peer, x: m.StreamItem) -> None:
        items, _, asking = self.streams[x.task]
        assert x.result is not None
        id = _ids.return_id(x.task, x.index)
        if x.result.kind != m.STORED:
            self._resolve(id, x.result)
        items[x.index] = x.result
        for q in asking.pop(x.index, []):
            self._answer_item(q, x.task, x.index)

    def _on_streamnext(self, p: Peer, x: m.StreamNext) -> None:
        items, end, asking = self.streams[x.task]
        if x.index in items or end:
            self._answer_item(p, x.task, x.index)
        else:
            asking.setdefault(x.index, []).append(p)

    def _answer_item(self, p: Peer, task: bytes, i: int) -> None:
        items, end, _ = self.streams[task]
        r = items.get(i)
        if r is None:
            r = m.Result(m.ERROR, err=end[1]) if end[1] is not None else m.Result()
        p.send(m.StreamItem(task, 0, i, r))
        for q in self.peers.values():
            if task in q.running:
                q.send(m.StreamAck(task, i + 1))

    def _end_stream(self, task: bytes, items: int, err: Optional[m.Error]) -> None:
        _, end, asking = self.streams[task]
        end[:] = [items, err]
        for i, peers in list(asking.items()):
            for q in peers:
                self._answer_item(q, task, i)
        asking.clear()

    def _on_blocked(self, p: Peer, x: m.Blocked) -> None:
        if x.task:
            p.blocked = True
        for id in x.returned:
            self.ready.insert(0, p.running.pop(id))
        self._schedule()

    def _on_unblocked(self, p: Peer, x: m.Unblocked) -> None:
        p.blocked = False
        p.send(m.Resume(x.task))

    def _on_cancel(self, p: Peer, x: m.Cancel) -> None:
        for q in (self.waiting, self.ready):
            for s in list(q):
                if s.id == x.task:
                    q.remove(s)
                    self._fail(s, m.Error(15, "", task=s.id.hex()))
        for w in self.peers.values():
            if x.task in w.running:
                if x.force:
                    self._fail(w.running.pop(x.task), m.Error(15))
                    os.kill(self.pids[w.worker], 9)
                else:
                    w.send(m.CancelTask(x.task))

    def _on_killactor(self, p: Peer, x: m.KillActor) -> None:
        w = self.actor_at.get(x.actor)
        if w is not None:
            os.kill(self.pids[w.worker], 9)

    def _on_request(self, p: Peer, x: m.Request) -> None:
        if x.method == "actor.get":
            id = self.names.get(cbor2.loads(x.body)["name"])
            p.send(m.Reply(x.req, cbor2.dumps({"actor": id})) if id else m.Reply(x.req, b"", m.Error(24, "no such actor")))
        elif x.method == "echo":
            p.send(m.Reply(x.req, x.body))
        elif x.method != "silence":
            p.send(m.Reply(x.req, b"", m.Error(29, f"method {x.method}")))

    # ---- objects

    def _resolve(self, id: bytes, r: m.Result, at: Optional[m.Extent] = None) -> None:
        if id not in self.objects:
            self.objects[id] = (r, at)
        for p, fetch in self.asking.pop(id, []):
            self._tell(p, id, fetch)

    def _tell(self, p: Peer, id: bytes, fetch: bool) -> None:
        r, at = self.objects[id]
        if r.kind == m.STORED and fetch:
            p.pins[id] = p.pins.get(id, 0) + 1
        p.send(m.Resolved(id, fetch, r, at if fetch else None, id in self.away))

    def bring(self, id: bytes) -> None:
        """The bytes of an object come here."""
        with self.lock:
            self.away.discard(id)
            for p, fetch in self.asking.pop(id, []):
                self._tell(p, id, fetch)

    def _fail(self, s: m.TaskSpec, err: m.Error, items: int = 0) -> None:
        assert s.opts is not None
        if s.opts.num_returns < 0:
            self._end_stream(s.id, items, err)
        for i in range(max(0, s.opts.num_returns)):
            self._resolve(_ids.return_id(s.id, i), m.Result(m.ERROR, err=err))
        if s.kind == m.ACTOR_CREATE:
            self.dead_actors.add(s.id)

    # ---- tasks

    def _schedule(self) -> None:
        for s in list(self.waiting):
            if all(not a.ref or a.ref in self.objects for a in s.args):
                self.waiting.remove(s)
                bad = next((r for a in s.args if a.ref for r, _ in [self.objects[a.ref]] if r.kind == m.ERROR), None)
                if bad is not None:
                    assert bad.err is not None
                    self._fail(s, bad.err)
                elif s.kind == m.ACTOR_CREATE:
                    self._fork(s)
                elif s.kind == m.ACTOR_CALL:
                    if s.actor in self.dead_actors:
                        self._fail(s, m.Error(3, "actor is dead"))
                    elif s.actor in self.actor_at:
                        self._push(self.actor_at[s.actor], [s])
                    else:
                        self.early.setdefault(s.actor, []).append(s)
                else:
                    self.ready.append(s)
        workers = [p for p in self.peers.values() if p.hello.role == m.WORKER and not p.actor]
        busy = sum(1 for p in workers if p.running and not p.blocked)
        for p in workers:
            if self.ready and not p.running and busy < self.cpus:
                n = max(1, min(4, len(self.ready) // self.cpus))
                self._push(p, self.ready[:n])
                del self.ready[:n]
                busy += 1
        if self.ready and busy + self.starting < self.cpus:
            self._fork(None)

    def _push(self, p: Peer, specs: list[m.TaskSpec]) -> None:
        self.lease += 1
        tasks = []
        for s in specs:
            args = []
            for i, a in enumerate(s.args):
                if a.ref:
                    r, at = self.objects[a.ref]
                    args.append(m.ArgValue(i, r, at))
            p.running[s.id] = s
            tasks.append(m.ExecTask(s, 1, args))
        p.send(m.Exec(self.lease, tasks))

    # ---- the template

    def _start_template(self, args: list[str]) -> None:
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fd = theirs.fileno()
        env = {**os.environ, "MOBULA_TEMPLATE_FD": str(fd)}
        self.template = subprocess.Popen(args, pass_fds=[fd], env=env)
        theirs.close()
        self.control = mine
        threading.Thread(target=self._watch, daemon=True).start()

    def _fork(self, spec: Optional[m.TaskSpec]) -> None:
        assert self.control is not None
        self.next += 1
        self.starting += 1
        if spec is not None:
            self.fresh[self.next] = spec
        env = {"MOBULA_WORKER_SOCKET": self.path, "MOBULA_WORKER_TOKEN": self.next.to_bytes(4, "big").hex(), "MOBULA_WORKER_ID": str(self.next),
               "MOBULA_WORKER_JOB": "1", "MOBULA_WORKER_KIND": "actors" if spec else "tasks"}
        self.ask({"op": "fork", "id": self.next, "env": env}, [1, 2])

    def ask(self, what: Any, fds: list[int]) -> None:
        assert self.control is not None
        self.control.sendmsg([json.dumps(what).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])

    def _watch(self) -> None:
        assert self.control is not None
        while True:
            try:
                data = self.control.recv(65536)
            except OSError:
                return
            if not data:
                return
            a = json.loads(data)
            with self.lock:
                self.answers.append(a)
                if a["op"] == "forked":
                    self.pids[a["id"]] = a["pid"]
                elif a["op"] == "exited":
                    self.exited[a["id"]] = a
                self.changed.notify_all()

    # ---- for tests

    def until(self, f: Any) -> Any:
        """Waits until f gives something true."""
        with self.lock:
            ok = self.changed.wait_for(f, PATIENCE)
            assert ok, f"within {PATIENCE:g} s: never true"
            return ok

    def driver(self) -> Peer:
        return next(p for p in self.peers.values() if p.hello.role == m.DRIVER)

    def workers(self) -> list[Peer]:
        return [p for p in self.peers.values() if p.hello.role == m.WORKER]

    def close(self) -> None:
        self.server.close()
        if self.control is not None:
            self.control.shutdown(socket.SHUT_RDWR)
            self.control.close()
        if self.template is not None:
            assert self.template.wait(PATIENCE) == 0
        self.drop_all()
        os.close(self.fd)
        shutil.rmtree(self.dir, ignore_errors=True)
