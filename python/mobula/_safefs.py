"""Makes and opens files in directories that other users of the machine can write to, such as /tmp, like internal/safefs in Go.

It follows no symbolic link and waits for no FIFO. A file or directory that it opens belongs to this user or root, and nobody else can
write to it; otherwise it raises PermissionDeniedError.
"""

from __future__ import annotations

import errno
import os
import stat

from .exceptions import PermissionDeniedError


def make_dir(path: str) -> None:
    """Makes a directory of mode 0700 unless it exists, and checks whom it belongs to."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as x:
        raise _refused(path, x, "a directory") from None
    try:
        _check(fd, path, stat.S_IFDIR)
    finally:
        os.close(fd)


def open_file(path: str, flags: int, mode: int = 0o600) -> int:
    """Opens a regular file. O_TRUNC takes effect only after the checks."""
    try:
        fd = os.open(path, flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    except FileNotFoundError:
        raise
    except OSError as x:
        raise _refused(path, x, "a regular file") from None
    try:
        _check(fd, path, stat.S_IFREG)
        os.set_blocking(fd, True)
        if flags & os.O_TRUNC:
            os.ftruncate(fd, 0)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _check(fd: int, path: str, kind: int) -> None:
    st = os.fstat(fd)
    if stat.S_IFMT(st.st_mode) != kind:
        raise PermissionDeniedError(f"{path} has mode {stat.filemode(st.st_mode)}: remove it, or choose another place")
    if st.st_uid not in (0, os.geteuid()):
        raise PermissionDeniedError(f"{path} belongs to user {st.st_uid}, and this process runs as user {os.geteuid()}: remove it, or choose "
                                    "another place (TMPDIR)")
    if st.st_mode & 0o022:
        raise PermissionDeniedError(f"{path} can be written by others (mode {stat.S_IMODE(st.st_mode):04o}): run chmod go-w on it if nobody has, "
                                    "or choose another place (TMPDIR)")


def _refused(path: str, x: OSError, want: str) -> PermissionDeniedError:
    if x.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
        try:
            found = stat.filemode(os.lstat(path).st_mode)
        except OSError:
            found = "something else"
        return PermissionDeniedError(f"{path} is {found}, and not {want}: remove it, or choose another place (TMPDIR)")
    return PermissionDeniedError(f"{path}: {x.strerror}")
