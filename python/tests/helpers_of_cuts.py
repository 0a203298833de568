"""Stops this package's code where CPython may run something else in its midst: a signal's handler, which may raise, or a finaliser.

CPython looks for signals as a function begins, behind each call, and as a loop goes back; its collector (of 3.11) runs where a container is made. Code
between two such places runs as a whole.
"""

from __future__ import annotations

import dis
import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any, Callable, Iterable, Optional

import mobula

_OURS = os.path.dirname(os.path.abspath(mobula.__file__)) + os.sep
_LOOKS = {"RESUME", "CALL", "CALL_KW", "CALL_FUNCTION_EX", "JUMP_BACKWARD"}  # the interpreter looks for signals behind these
_MAKES = {"BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_MAP", "BUILD_CONST_KEY_MAP", "BUILD_SLICE", "MAKE_FUNCTION", "GET_ITER", "LIST_TO_TUPLE"}


class CutOff(BaseException):
    """What a signal's handler raises."""


class Stops:
    """Runs a function, and has act called at some of the places in it where something else may run: those whose numbers are in at. count is the number
    of places so far."""

    def __init__(self, act: Optional[Callable[[], None]] = None, at: Iterable[int] = (), collector: bool = False, only: str = "") -> None:
        self.count = 0
        self.where = ""
        self._act = act
        self._at = set(at)
        self._collector = collector
        self._only = _OURS + only
        self._names: dict[CodeType, dict[int, str]] = {}
        self._last: dict[int, str] = {}

    def run(self, f: Callable[[], Any]) -> Any:
        if sys.version_info >= (3, 12):  # of which a trace function is not told of every instruction
            return self._monitored(f)
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            return f()
        finally:
            sys.settrace(before)

    def _monitored(self, f: Callable[[], Any]) -> Any:
        mon: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        tool, event, me = 4, mon.events.INSTRUCTION, threading.get_ident()

        def instruction(code: CodeType, offset: int) -> Any:
            if not code.co_filename.startswith(self._only):
                return mon.DISABLE
            if threading.get_ident() == me:
                self._instruction(sys._getframe(1), offset)
            return None

        mon.use_tool_id(tool, "cuts")
        mon.register_callback(tool, event, instruction)
        mon.restart_events()
        mon.set_events(tool, event)
        try:
            return f()
        finally:
            mon.set_events(tool, 0)
            mon.register_callback(tool, event, None)
            mon.free_tool_id(tool)

    def _called(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(self._only):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        self._last[id(frame)] = "RESUME"
        return self._step

    def _step(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "return":
            self._last.pop(id(frame), None)
        if event == "opcode":
            self._instruction(frame, frame.f_lasti)
        return self._step

    def _instruction(self, frame: FrameType, offset: int) -> None:
        code = frame.f_code
        names = self._names.get(code)
        if names is None:
            names = self._names[code] = {i.offset: i.opname for i in dis.get_instructions(code)}
        name, before = names.get(offset, ""), self._last.get(id(frame), "")
        self._last[id(frame)] = name
        looks = before in _LOOKS and name not in ("RESUME", "PRECALL", "PUSH_EXC_INFO")  # the last: the call has raised
        if before == "RESUME" and code.co_name == "__del__" and not self._collector:
            looks = False  # CPython itself discards an exception there, and with it the call
        if looks or (self._collector and name in _MAKES):
            self.count += 1
            if self.count in self._at and self._act is not None:
                self.where = f"{code.co_filename[len(_OURS):]}:{frame.f_lineno}"
                self._act()


def places(f: Callable[[], Any], collector: bool = False, only: str = "") -> int:
    """How many places f has."""
    stops = Stops(collector=collector, only=only)
    stops.run(f)
    return stops.count


def cut() -> None:
    raise CutOff
