package conn

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/safefs"
)

// Listener is a node's socket: mode 0600 in a directory of mode 0700, with a lock file
// beside it that tells whether its node lives.
type Listener struct {
	cfg  Config
	path string
	lock *os.File
	ul   *net.UnixListener
	uid  uint32        // the only user served
	done chan struct{} // closed by Close
	kept *net.UnixConn // accepted, but out of descriptors; Serve's

	mu     sync.Mutex // guards what follows
	conns  map[*Conn]struct{}
	closed bool
	wg     sync.WaitGroup // one for each connection
}

// Listen makes the socket at path. Its directory is made with mode 0700 if it is not
// there; one that others may enter, or that is another user's, is errs.ErrPermission.
// What a killed node left at path is removed. A node that lives there is
// errs.ErrNodeRunning, also if it started at the same moment.
func Listen(path string, cfg Config) (*Listener, error) {
	if err := privateDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errs.New(errs.CodeNodeRunning, "%s is the socket of a running node: stop it, or give this one another directory", path)
		}
		return nil, errs.New(errs.CodePermission, "lock file of %s: %v", path, err)
	}
	ul, err := bind(path)
	if err != nil {
		unlock(lock)
		return nil, err
	}
	return &Listener{cfg: cfg.withDefaults(), path: path, lock: lock, ul: ul, uid: uint32(os.Geteuid()), done: make(chan struct{}), conns: make(map[*Conn]struct{})}, nil
}

// privateDir makes dir, or checks that it is this user's alone.
func privateDir(dir string) error {
	if err := safefs.MakeDir(dir); err != nil {
		return errs.New(errs.CodePermission, "directory of the node's socket: %v", err)
	}
	fi, err := os.Stat(dir)
	if err != nil {
		return errs.New(errs.CodePermission, "directory of the node's socket: %v", err)
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return errs.New(errs.CodePermission, "%s, the directory of the node's socket, has mode %04o: run chmod 700 on it, or choose another", dir, fi.Mode().Perm())
	}
	return nil
}

// bind makes the socket. The lock is held, so that a socket that is there is a leftover,
// unless something else than a node answers at it.
func bind(path string) (*net.UnixListener, error) {
	if fi, err := os.Lstat(path); err == nil {
		if fi.Mode().Type() != fs.ModeSocket {
			return nil, errs.New(errs.CodePermission, "%s is in the way: it is no socket but %v; remove it, or choose another directory", path, fi.Mode())
		}
		if err := removeStale(path); err != nil {
			return nil, err
		}
	}
	short, done, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	ul, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, errs.New(errs.CodePermission, "socket %s: %v", path, err)
	}
	ul.SetUnlinkOnClose(false) // by a name that may be another's then; Close removes it
	if err := os.Chmod(path, 0o600); err != nil {
		_ = ul.Close() // chmod's error says more
		_ = os.Remove(path)
		return nil, errs.New(errs.CodePermission, "socket %s: %v", path, err)
	}
	return ul, nil
}

func removeStale(path string) error {
	short, done, err := shortPath(path)
	if err != nil {
		return err
	}
	defer done()
	c, err := net.DialTimeout("unix", short, time.Second)
	switch {
	case err == nil:
		_ = c.Close() // only asked whether anybody is there
		return errs.New(errs.CodeNodeRunning, "%s: a process accepts connections there", path)
	case !errors.Is(err, unix.ECONNREFUSED):
		return errs.New(errs.CodePermission, "%s is in the way, and whether it is a leftover cannot be told: %v", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errs.New(errs.CodePermission, "leftover socket %s: %v", path, err)
	}
	return nil
}

// lockFile opens path and locks it; the lock ends with this process. The error wraps
// EWOULDBLOCK if another holds it.
func lockFile(path string) (*os.File, error) {
	for {
		f, err := safefs.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := flock(f); err != nil {
			_ = f.Close() // flock's error says more
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if safefs.IsAt(f, path) {
			return f, nil
		}
		_ = f.Close() // its owner removed it between our open and our lock
	}
}

func flock(f *os.File) error {
	rc, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	err = rc.Control(func(fd uintptr) { lockErr = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) })
	return errors.Join(err, lockErr)
}

// unlock removes the lock file and releases the lock, in this order: who opened the
// old file meanwhile sees that it is gone.
func unlock(f *os.File) {
	_ = os.Remove(f.Name()) // if it stays, the next node takes it
	_ = f.Close()
}

// Path is the socket's.
func (l *Listener) Path() string { return l.path }

// Conns is the number of connections, those that shake hands included.
func (l *Listener) Conns() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// Close removes the socket and closes every connection, writing what each has pending.
// It returns when every session has ended.
func (l *Listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		l.wg.Wait()
		return nil
	}
	l.closed = true
	close(l.done)
	conns := make([]*Conn, 0, len(l.conns))
	for c := range l.conns {
		conns = append(conns, c)
	}
	l.mu.Unlock()
	_ = os.Remove(l.path) // before nobody listens: what stays is taken for a killed node's
	err := l.ul.Close()
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() { _ = c.Close() }) // its session sees why
	}
	wg.Wait()
	l.wg.Wait()
	unlock(l.lock)
	return err
}
