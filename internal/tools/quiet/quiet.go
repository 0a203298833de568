package quiet

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrBusy says that another run holds the machine.
var ErrBusy = errors.New("the machine is not quiet")

// Hold takes the lock for the run of this name, until release. With ErrBusy it says who has it.
func Hold(name string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "mobula-quiet.lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 1<<10))
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("%w: %s runs", ErrBusy, strings.TrimSpace(string(holder)))
		}
		return nil, err
	}
	if err := errors.Join(f.Truncate(0), writeLine(f, name)); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

func writeLine(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s+"\n"), 0)
	return err
}
