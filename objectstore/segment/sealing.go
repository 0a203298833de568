package segment

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Sealing is a file in the making that nobody will be able to write: not through a mapping, nor by a descriptor opened again.
type Sealing struct {
	file *os.File
	data []byte
}

// NewSealing makes one of size bytes, with memory behind all of it.
func NewSealing(size uint64, cfg Config) (*Sealing, error) {
	if cfg.Memory == nil {
		cfg.Memory = Available
	}
	if cfg.Margin == 0 {
		cfg.Margin = DefaultMargin
	}
	fd, err := unix.MemfdCreate("mobula-copy", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, unavailable("memfd_create: %v", err)
	}
	s := &Segment{file: os.NewFile(uintptr(fd), "memfd:mobula-copy"), size: size, memory: cfg.Memory, margin: cfg.Margin}
	c := &Sealing{file: s.file}
	if err = s.file.Truncate(int64(size)); err != nil {
		err = unavailable("size a memfd to %d bytes: %v", size, err)
	} else {
		err = s.Reserve([]Range{{0, size}})
	}
	if err == nil {
		if c.data, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			err = unavailable("map %d bytes: %v", size, err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.Discard())
	}
	return c, nil
}

// Data is where the content goes, until Seal or Discard.
func (c *Sealing) Data() []byte { return c.data }

// Seal ends the writing, for good and for everyone, and gives the file, which is the caller's.
func (c *Sealing) Seal() (*os.File, error) {
	err := unix.Munmap(c.data)
	c.data = nil
	if err == nil {
		_, err = unix.FcntlInt(c.file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		return nil, errors.Join(unavailable("seal a copy: %v", err), c.file.Close())
	}
	return c.file, nil
}

// Discard gives it up.
func (c *Sealing) Discard() error {
	var err error
	if c.data != nil {
		err = unix.Munmap(c.data)
	}
	return errors.Join(err, c.file.Close())
}
