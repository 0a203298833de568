"""Steps that nothing cuts: those marked "# whole". CPython looks for signals, switches threads and, from 3.12 on, collects garbage only as a function
begins, behind a call, and as a loop goes back; CPython 3.11 collects where a container is made. So a marked step has none of these.

The mark is on an if, whose condition and body are the step; or on another statement, which is one step with the one before it in its block."""

from __future__ import annotations

import ast
import dis
from pathlib import Path
from typing import Iterator

import pytest
from helpers_of_cuts import _LOOKS, _MAKES

import mobula

_ROOT = Path(mobula.__file__).parent
_MARK = "# whole"
_CUTS = (ast.Call, ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Lambda, ast.JoinedStr,
         ast.Slice, ast.Await, ast.Yield, ast.YieldFrom, ast.With, ast.Raise, ast.Assert, ast.FunctionDef)


def steps(text: str) -> Iterator[list[ast.AST]]:
    """The parts of each marked step."""
    lines = text.splitlines()
    for block in (b for node in ast.walk(ast.parse(text)) for name in ("body", "orelse", "finalbody") if isinstance(b := getattr(node, name, None), list)):
        for i, s in enumerate(block):
            first = lines[s.lineno - 1]
            if isinstance(s, ast.If):
                if _MARK in first:
                    yield [s.test, *(x for x in s.body if not _ends(x))]
                at = s.orelse[0].lineno - 2 if s.orelse and not isinstance(s.orelse[0], ast.If) else -1
                if at >= 0 and "else:" in lines[at] and _MARK in lines[at]:
                    yield [s.test, *(x for x in s.orelse if not _ends(x))]
            elif _MARK in first:
                yield block[max(0, i - 1):i + 1]


def _ends(s: ast.AST) -> bool:
    """Whether a statement leaves the step: what comes then may be cut off."""
    return isinstance(s, (ast.Return, ast.Break, ast.Continue))


def _constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Tuple) and all(isinstance(e, ast.Constant) for e in node.elts)


def refused(parts: list[ast.AST]) -> list[str]:
    bad = []
    for part in parts:
        targets = {id(t) for n in ast.walk(part) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Tuple) for t in (n.value, *n.targets)}
        for node in ast.walk(part):
            if isinstance(node, _CUTS) and not _constant(node) and id(node) not in targets:
                bad.append(f"line {getattr(node, 'lineno', '?')}: {ast.unparse(node)}")
    return bad


def test_marked_steps_are_whole() -> None:
    wrong, n = [], 0
    for path in sorted(_ROOT.rglob("*.py")):
        text = path.read_text()
        found = list(steps(text))
        assert len(found) == text.count(_MARK), f"{path}: a mark is where none is understood"
        n += len(found)
        wrong += [f"{path.relative_to(_ROOT)}: {b}" for parts in found for b in refused(parts)]
    assert not wrong, "\n".join(wrong)
    assert n


@pytest.mark.parametrize("text, whole", [
    ("if a is b:  # whole\n    x.y = a\n    del q[0]\n    out += one\n", True), ("if a is b:  # whole\n    out.append(one)\n", False),
    ("if f(a):  # whole\n    x = 1\n", False), ("if a:  # whole\n    out += (one,)\n", False), ("if a:  # whole\n    x, y = b, 1\n", True),
    ("if a:  # whole\n    while b:\n        c = 1\n", False), ("x = q[0]\ndel q[0]  # whole\n", True), ("x = f()\ndel q[0]  # whole\n", False),
    ("if a:\n    f()\nelse:  # whole, with the look at it\n    x = 1\n", True), ("if a:  # whole\n    return x\n", True),
])
def test_what_is_whole(text: str, whole: bool) -> None:
    assert [not refused(parts) for parts in steps(text)] == [whole]


def test_this_python_cuts_where_it_is_said_to() -> None:
    """What the rules allow compiles to nothing that CPython stops at."""
    allowed = "if a is b and c[0] is d and n == m + 1 and not x.y and k in t:\n    x.y = a\n    x.z += 1\n    del c[0]\n    del t[k]\n    t[k] = a\n    out += one\n    p, q = a, 1\n"
    assert not {i.opname for i in dis.get_instructions(compile(allowed, "", "exec")) if i.opname != "RESUME"} & (_LOOKS | _MAKES)
