package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
)

// What lies on disk is damaged while the node runs: results are made again, puts say that they
// are lost, what comes after is spilled as before.
func TestFaultSpilledCopiesAreDamaged(t *testing.T) {
	for what, damage := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 200<<10) },
		"emptied":   func(path string) error { return os.Truncate(path, 0) },
		"removed":   os.Remove,
		"flipped":   func(path string) error { return flip(path, 300<<10) },
	} {
		t.Run(what, func(t *testing.T) {
			harness.BothModes(t, node.Config{CPUs: 2, StoreBytes: 16 * harness.MiB}, func(t *testing.T, ctx context.Context, n *node.Node) {
				h := hoard(t, ctx, 128)
				files := harness.SpillFiles(t, filepath.Dir(n.Address()))
				for _, f := range files {
					if err := damage(f); err != nil {
						t.Fatal(err)
					}
				}
				got := h.check(t, ctx)
				lost, s := got.lost, harness.OwnerStats(t, ctx, n)
				if lost == 0 || s.Reconstructed == 0 || got.noDisk > 0 {
					t.Errorf("of %d files: %d puts lost, %d results made again; want some of each", len(files), lost, s.Reconstructed)
				}
				if what == "flipped" && lost+int(s.Reconstructed) > len(files) {
					t.Errorf("%d puts lost, %d results made again, for a byte in each of %d files", lost, s.Reconstructed, len(files))
				}
				h.release()
				hoard(t, ctx, 64).whole(t, ctx)
			})
		})
	}
}

// flip changes one bit of a file, in its middle where it is shorter: it may be being written.
func flip(path string, at int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return errors.Join(err, f.Close())
	}
	at = min(at, st.Size()/2)
	var b [1]byte
	if _, err = f.ReadAt(b[:], at); err == nil {
		b[0] ^= 0x10
		_, err = f.WriteAt(b[:], at)
	}
	return errors.Join(err, f.Close())
}

// vanish removes a directory at once, whatever is being written to it.
func vanish(dir string) error {
	gone := dir + ".gone"
	return errors.Join(os.Rename(dir, gone), os.RemoveAll(gone))
}

// The node's directory goes away under it: it makes another. The user's own it does not make, it may
// be where a disk is to be mounted; it is used again when it is there.
func TestFaultSpillDirectoryGone(t *testing.T) {
	t.Parallel() // it mostly waits
	root := harness.TempDir(t)
	for what, gone := range map[string]func() error{
		"the node's": func() error {
			all, err := os.ReadDir(root)
			if err != nil || len(all) == 0 {
				return fmt.Errorf("%d sessions in %s: %w", len(all), root, err)
			}
			return vanish(filepath.Join(root, all[0].Name()))
		},
		"the user's": func() error { return vanish(root) },
	} {
		t.Run(what, func(t *testing.T) {
			cfg := node.Config{CPUs: 2, StoreBytes: 16 * harness.MiB, SpillURLs: []string{root}} // the node's own is there again long before a create loses patience
			if what == "the user's" {
				cfg.StorePatience = 2 * time.Second
			}
			harness.BothModes(t, cfg, func(t *testing.T, ctx context.Context, _ *node.Node) {
				h := hoard(t, ctx, 128)
				if err := gone(); err != nil {
					t.Fatal(err)
				}
				if what == "the user's" {
					_, full := untilFull(t, ctx, 64)
					harness.WantErr(t, "a put", full, mobula.ErrOutOfDisk, root, "gone")
					if err := os.Mkdir(root, 0o700); err != nil {
						t.Fatal(err)
					}
					harness.Eventually(t, ctx, "the directory is used again", func() bool { // a result that is made again before has ErrOutOfDisk for good
						h, err := untilFull(t, ctx, 64) // twice the store
						h.release()
						return err == nil
					})
				}
				s := h.check(t, ctx)
				if s.noDisk > 0 {
					t.Errorf("%d objects wait for the disk", s.noDisk)
				}
				if s.lost == 0 {
					t.Error("no put is lost although all files are gone")
				}
				h.release()
				hoard(t, ctx, 64).whole(t, ctx)
			})
		})
	}
}

// A directory that cannot be had is said at the start, by name.
func TestFaultSpillDirectoryCannotBeMade(t *testing.T) {
	file := filepath.Join(harness.TempDir(t), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(file, "spill")
	c, err := mobula.Start(t.Context(), mobula.WithStore(16*harness.MiB), mobula.WithDir(harness.TempDir(t)), mobula.WithSpill(dir), mobula.WithLogger(harness.Quiet()))
	if err == nil {
		_ = c.Close(t.Context()) // it is not wanted
		t.Fatal("the runtime started")
	}
	if !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("the error names neither the directory nor what is wrong: %v", err)
	}
	made := filepath.Join(harness.TempDir(t), "a", "b")
	c, err = mobula.Start(t.Context(), mobula.WithStore(16*harness.MiB), mobula.WithDir(harness.TempDir(t)), mobula.WithSpill(made), mobula.WithLogger(harness.Quiet()))
	if err != nil {
		t.Fatalf("a directory that is only missing: %v", err)
	}
	ctx := c.Context(t.Context())
	hoard(t, ctx, 64).whole(t, ctx)
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
}

// untilFull puts objects until there is no room left; all of them are still there.
func untilFull(t *testing.T, ctx context.Context, most int) (h *hoarder, full error) {
	t.Helper()
	h = &hoarder{}
	for i := range most {
		ref, err := mobula.Put(ctx, harness.Array(hoardEach, float64(i)))
		if err != nil {
			return h, err
		}
		h.refs = append(h.refs, ref)
	}
	return h, nil
}

// The disk is full: a put says so, nothing is lost, and it goes on when something was released.
func TestFaultSpillDirectoryFull(t *testing.T) {
	t.Parallel() // it mostly waits
	if !harness.InMounts(t) {
		return
	}
	dir := tmpfs(t, "24m")
	harness.BothModes(t, node.Config{CPUs: 2, StoreBytes: 16 * harness.MiB, SpillURLs: []string{dir}, StorePatience: 2 * time.Second}, func(t *testing.T, ctx context.Context, n *node.Node) {
		h, full := untilFull(t, ctx, 128)
		harness.WantErr(t, "a full disk", full, mobula.ErrOutOfDisk, dir)
		if n := len(h.refs) * hoardEach / harness.MiB; n < 24 || n > 40 {
			t.Errorf("%d MiB went into 16 MiB of memory and 24 MiB of disk", n)
		}
		harness.Works(t, ctx)
		if s := h.check(t, ctx); s.lost > 0 || s.noDisk == len(h.refs) {
			t.Errorf("of %d objects %d are lost, %d wait for the disk", len(h.refs), s.lost, s.noDisk)
		}
		_, err := harness.Fill.Go(ctx, mobula.V(hoardEach/8), mobula.V(1.0)).Get(ctx)
		harness.WantErr(t, "a result on a full disk", err, mobula.ErrOutOfDisk, dir)
		for _, r := range h.refs[len(h.refs)-8:] { // of those in memory
			r.Release()
		}
		h.refs = h.refs[:len(h.refs)-8]
		harness.Eventually(t, ctx, "the room of some is the others'", func() bool { return h.check(t, ctx) == seen{} })
		h.release()
		harness.Eventually(t, ctx, "all are freed", func() bool {
			s, err := n.StoreStats(ctx)
			return err == nil && s.Objects == 0
		})
		again, err := untilFull(t, ctx, 64)
		if err != nil {
			t.Errorf("after all was released: %v", err)
		}
		again.whole(t, ctx)
		again.release()
	})
}

// The disk turns read-only, as Linux does after an error: what is on it can be read where there is
// room, new objects fail in bounded time, and when it is writable again they do not.
func TestFaultSpillDirectoryReadOnly(t *testing.T) {
	t.Parallel() // it mostly waits
	if !harness.InMounts(t) {
		return
	}
	dir := tmpfs(t, "128m")
	harness.BothModes(t, node.Config{CPUs: 2, StoreBytes: 16 * harness.MiB, SpillURLs: []string{dir}, StorePatience: 2 * time.Second}, func(t *testing.T, ctx context.Context, _ *node.Node) {
		h := hoard(t, ctx, 64)
		harness.Eventually(t, ctx, "the disk is read-only", func() bool {
			err := remount(t, dir, unix.MS_RDONLY)
			if err != nil && !errors.Is(err, unix.EBUSY) { // busy: a file is being written
				t.Fatal(err)
			}
			return err == nil
		})
		more, full := untilFull(t, ctx, 64)
		harness.WantErr(t, "a read-only disk", full, mobula.ErrOutOfDisk, dir)
		for _, x := range []*hoarder{h, more} {
			if s := x.check(t, ctx); s.lost > 0 || s.noDisk > 0 && s.noDisk == len(x.refs) {
				t.Errorf("of %d objects %d are lost, %d wait for the disk", len(x.refs), s.lost, s.noDisk)
			}
		}
		if err := remount(t, dir, 0); err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, ctx, "it is used again", func() bool { return h.check(t, ctx) == seen{} && more.check(t, ctx) == seen{} })
		harness.Eventually(t, ctx, "it is written again", func() bool { // a target that has failed is tried after a pause
			ref, err := mobula.Put(ctx, harness.Array(hoardEach, 0))
			if err == nil {
				ref.Release()
			}
			return err == nil
		})
		again := hoard(t, ctx, 64)
		again.whole(t, ctx)
		h.release()
		more.release()
		again.release()
	})
}
