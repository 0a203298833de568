package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mobula/internal/errs"
)

// epochName is the file that counts the lives of a kept node's directory.
const epochName = "epoch"

// epochShift leaves room for the ids that one life gives out: 2^32 clients.
const epochShift = 32

// nextEpoch begins a life of the directory: a number larger than every client id and epoch of the lives before. It is on the disk before
// it is used, and comes from no clock. A node that keeps nothing has one life.
func nextEpoch(dir string, keep bool) (uint64, error) {
	if !keep {
		return 1 << epochShift, nil
	}
	path := filepath.Join(dir, epochName)
	life, err := lastLife(path)
	if err != nil {
		return 0, err
	}
	if life++; life >= 1<<(64-epochShift)-1 {
		return 0, errs.New(errs.CodeInvalid, "%s says that the node began %d times: give it another directory", path, life)
	}
	if err := writeDurably(path, strconv.FormatUint(life, 10)+"\n"); err != nil {
		return 0, errs.New(errs.CodeInvalid, "node directory: %v", err)
	}
	return life << epochShift, nil
}

// newEpoch is for a component that is built anew: answers to the one before it do not fit.
func (n *Node) newEpoch() uint64 { return n.epoch + n.epochs.Add(1) }

// lastLife is the number of the life before. Where no file tells, release 0.3 may have had the directory: it took ids from the wall clock
// in nanoseconds, above which the count begins.
func lastLife(path string) (uint64, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return uint64(time.Now().UnixNano()) >> epochShift, nil
	}
	if err != nil {
		return 0, errs.New(errs.CodeInvalid, "node directory: %v", err)
	}
	life, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0, errs.New(errs.CodeInvalid, "%s holds %q where the number of the node's last start should be: remove the file, if no clock was set back since the node last ran", path, b)
	}
	return life, nil
}

// writeDurably replaces a file; a crash at any moment, of the machine too, leaves the old one or the new one.
func writeDurably(path, text string) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
