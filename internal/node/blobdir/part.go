package blobdir

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/safefs"
)

// Part is a blob that is being written.
type Part struct {
	dir  string
	hash [32]byte
	file *os.File
}

// Begin makes room for a blob of a size in a directory, which it makes if it is not there. number tells apart those that are written at the same time.
func Begin(dir string, hash [32]byte, size, number uint64) (*Part, error) {
	if err := safefs.MakeDir(dir); err != nil {
		return nil, err
	}
	f, err := safefs.OpenFile(fmt.Sprintf("%s.%d%s", Path(dir, hash), number, unfinished), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, full(err)
	}
	p := &Part{dir: dir, hash: hash, file: f}
	if size > 0 {
		if err := reserve(f, size); err != nil {
			p.Drop()
			return nil, err
		}
	}
	return p, nil
}

// reserve has a full disk show before the first byte is sent, on file systems that can.
func reserve(f *os.File, size uint64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, int64(size))
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = nil
	}
	if err != nil {
		return full(&os.PathError{Op: "make room in", Path: f.Name(), Err: err})
	}
	return nil
}

// Write writes some of the bytes; it may be called by several goroutines.
func (p *Part) Write(offset uint64, data []byte) error {
	_, err := p.file.WriteAt(data, int64(offset))
	return full(err)
}

// Store gives the blob its name, if the bytes are right. The Part is over in any case. perm is the file's.
func (p *Part) Store(perm os.FileMode) error {
	sum, err := Sum(p.file)
	if err == nil && sum != p.hash {
		err = errs.New(errs.CodeProtocol, "a blob that was sent as %x is %x", p.hash, sum)
	}
	if err == nil {
		err = p.file.Chmod(perm)
	}
	if err != nil {
		p.Drop()
		return err
	}
	if err = p.file.Close(); err == nil { // an executable that is open for writing cannot be run
		err = os.Rename(p.file.Name(), Path(p.dir, p.hash))
	}
	if err != nil {
		_ = os.Remove(p.file.Name()) // err is the reason
	}
	return err
}

// Drop gives the Part up.
func (p *Part) Drop() {
	_ = p.file.Close() // what it has is not used
	_ = os.Remove(p.file.Name())
}

// Touch notes that a blob was used now, for List.
func Touch(dir string, hash [32]byte) error {
	now := time.Now()
	return os.Chtimes(Path(dir, hash), now, now)
}

// full names the error of a full disk.
func full(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return errs.New(errs.CodeOutOfDisk, "%v", err)
	}
	return err
}
