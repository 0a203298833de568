package disk

import (
	"testing"

	"golang.org/x/sys/unix"

	"mobula/e2e/harness"
)

// tmpfs is a directory that holds so many bytes, "16m".
func tmpfs(t *testing.T, size string) string {
	t.Helper()
	dir := harness.TempDir(t)
	tmpfsOn(t, dir, size)
	return dir
}

// tmpfsOn mounts one on a directory, which this user alone may use.
func tmpfsOn(t *testing.T, dir, size string) {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Fatalf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
}

// remount makes a tmpfs read-only, or writable again.
func remount(t *testing.T, dir string, flags uintptr) error {
	t.Helper()
	return unix.Mount("", dir, "", unix.MS_REMOUNT|flags, "")
}
