package segment

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Huge pages make a large value several times faster to write for the first time and to map, and somewhat faster to
// read: 2 MiB are one fault and one entry of a page table. A memfd has them only if the machine's setting for all shared memory
// (shmem_enabled) allows it. A tmpfs of our own has them by a mount option, for mappings that ask for them (MADV_HUGEPAGE). To
// mount one takes CAP_SYS_ADMIN; without it the segment is a memfd with small pages.

// hugeFrom is the size of the smallest segment with huge pages.
const hugeFrom = 32 << 20

// /proc shows the segment of a process as shownName, however it was made: the kernel puts "memfd:" before a memfd's name.
const (
	memfdName = "mobula-segment"
	shownName = "memfd:" + memfdName
)

// openHuge makes a file that like a memfd is gone with its last descriptor, on a tmpfs that is mounted nowhere.
func openHuge(size uint64) (*os.File, error) {
	mount, err := mountHuge()
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(mount) }() // an open file keeps the mount
	fd, err := unix.Openat(mount, shownName, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create a file: %w", err)
	}
	f := os.NewFile(uintptr(fd), shownName)
	if err = unix.Unlinkat(mount, shownName, 0); err == nil {
		err = f.Truncate(int64(size))
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func mountHuge() (int, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("fsopen: %w", err)
	}
	defer func() { _ = unix.Close(fs) }()
	for _, o := range [][2]string{{"huge", "advise"}, {"size", "0"}, {"mode", "0700"}} {
		if err := unix.FsconfigSetString(fs, o[0], o[1]); err != nil {
			return 0, fmt.Errorf("tmpfs with %s=%s: %w", o[0], o[1], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return 0, fmt.Errorf("tmpfs: %w", err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return 0, fmt.Errorf("fsmount: %w", err)
	}
	return mount, nil
}
