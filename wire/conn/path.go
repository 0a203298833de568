package conn

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
)

// maxPath is the longest socket path that Linux takes, in bytes.
const maxPath = 107

// shortPath gives a path by which the kernel takes the socket, however long its own is: one that is too long is reached through a
// descriptor of its directory. done closes that; the path is of use until then.
func shortPath(path string) (short string, done func(), err error) {
	if len(path) <= maxPath {
		return path, func() {}, nil
	}
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	const room = len("/proc/self/fd/2147483647/")
	if len(name) > maxPath-room {
		return "", nil, errs.New(errs.CodeInvalid, "socket name %q has %d bytes, Linux takes %d: choose a shorter one", name, len(name), maxPath-room)
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("directory %s: %w", strings.TrimSuffix(dir, "/"), err)
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", fd, name), func() { _ = unix.Close(fd) }, nil
}
