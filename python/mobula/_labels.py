"""Conditions on the labels of nodes, in Ray's syntax: what the options label_selector and prefer_labels say."""

from __future__ import annotations

import re
from typing import Any, Mapping

from ._wire.messages import LABEL_ABSENT, LABEL_EXISTS, LABEL_IN, LABEL_NOT_IN, LabelMatch
from .exceptions import InvalidError

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_DOMAIN_PART = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_MAX_DOMAIN = 253
_WANT_NAME = "1 to 63 letters, digits, dots, dashes and underscores, with a letter or digit at either end"
_WANT = 'want "a", "!a", "in(a, b)", "!in(a, b)", "exists()" or "!exists()"'


def selector(option: str, given: Mapping[str, Any]) -> list[LabelMatch]:
    """The conditions in the order of their keys."""
    return [_match(f"{option}[{key!r}]", key, given[key]) for key in sorted(given)]


def _match(where: str, key: str, text: Any) -> LabelMatch:
    domain, slash, name = key.rpartition("/")
    if slash and not (len(domain) <= _MAX_DOMAIN and all(_DOMAIN_PART.fullmatch(part) for part in domain.split("."))):
        raise InvalidError(f"{where}: {domain!r} is no domain; want one such as example.com before the slash, in small letters")
    if not _NAME.fullmatch(name):
        raise InvalidError(f"{where}: {name!r} is no name of a label; want {_WANT_NAME}")
    if not isinstance(text, str):
        raise InvalidError(f"{where}={text!r}: {_WANT}")
    condition = text.strip()
    negated = condition.startswith("!")
    condition = condition[1:].strip() if negated else condition
    if "(" not in condition:
        values = [condition]
    elif condition.startswith("exists(") and condition.endswith(")"):
        if condition[7:-1].strip():
            raise InvalidError(f"{where}={text!r}: exists takes no values; {_WANT}")
        return LabelMatch(key, LABEL_ABSENT if negated else LABEL_EXISTS)
    elif condition.startswith("in(") and condition.endswith(")"):
        values = [value.strip() for value in condition[3:-1].split(",")]
    else:
        raise InvalidError(f"{where}={text!r} is no condition; {_WANT}")
    for value in values:
        if not _NAME.fullmatch(value):
            raise InvalidError(f"{where}={text!r}: the value {value!r}; want {_WANT_NAME}; {_WANT}")
    return LabelMatch(key, LABEL_NOT_IN if negated else LABEL_IN, sorted(set(values)))
