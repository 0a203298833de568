package rotate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"mobula/internal/errs"
	"mobula/internal/safefs"
)

// Writer appends to a file.
type Writer struct {
	path string
	size int64
	keep int

	mu      sync.Mutex
	file    *os.File // guarded by mu; nil before the first write and after Close
	written int64    // guarded by mu: bytes in file
	closed  bool     // guarded by mu
}

// New makes a writer of a file of at most size bytes; keep full ones are kept beside it. The first write opens the
// file, and appends if it exists.
func New(path string, size int64, keep int) *Writer {
	return &Writer{path: path, size: size, keep: keep}
}

// Write appends all of p to one file; it refuses more bytes than the size.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, errs.New(errs.CodeShutdown, "%s is closed", w.path)
	}
	if int64(len(p)) > w.size {
		return 0, errs.New(errs.CodeInvalid, "%s: %d bytes in one write, files are of %d at most", w.path, len(p), w.size)
	}
	if w.file == nil {
		if err := w.open(); err != nil {
			return 0, err
		}
	}
	if w.written+int64(len(p)) > w.size {
		if err := w.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := w.file.Write(p)
	w.written += int64(n)
	return n, err
}

func (w *Writer) open() error {
	if err := safefs.MakeRoot(filepath.Dir(w.path)); err != nil {
		return err
	}
	f, err := safefs.OpenFile(w.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		_ = f.Close() // nothing was written
		return err
	}
	w.file, w.written = f, st.Size()
	return nil
}

// rotate makes room: a new file under the name.
func (w *Writer) rotate() error {
	name := func(i int) string { return fmt.Sprintf("%s.%d", w.path, i) }
	if err := os.Remove(name(w.keep)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for i := w.keep - 1; i >= 1; i-- {
		if err := os.Rename(name(i), name(i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if w.keep > 0 {
		if err := os.Rename(w.path, name(1)); err != nil {
			return err
		}
	} else if err := os.Remove(w.path); err != nil {
		return err
	}
	err := w.file.Close()
	w.file = nil
	if err != nil {
		return err
	}
	return w.open()
}

// Close closes the file; further writes are refused.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file = nil
	return f.Close()
}
