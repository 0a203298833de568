"""Texts of values whose classes users have written: such code may raise anything, or give no text."""

from __future__ import annotations


def said(x: object) -> str:
    """What str(x) gives; if that fails, a text that says so."""
    try:
        return str.__str__(str(x))  # a subclass of str may have a format of its own
    except BaseException as why:
        return f"<its __str__ raised {type(why).__name__}>"


def named(x: BaseException) -> str:
    """An exception's class and text, as the last line of a traceback has them."""
    text = said(x)
    return f"{type(x).__name__}: {text}" if text else type(x).__name__


__all__ = ["named", "said"]
