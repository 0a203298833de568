package register

import (
	"errors"
	"fmt"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// ErrCopied is wrapped when a directory is a copy of a node's: two nodes with one identity would take each other's memory, spill
// files and names.
var ErrCopied = errors.New("the node's directory is a copy")

// Claim is what a directory knows about itself.
type Claim struct {
	Identity string
	Life     string // random name of the life that begins
	Last     *Row   // row of the directory's last life; nil: it had none
}

// Row is a home's row in the register.
type Row struct {
	Home     ids.Home `json:"home"`
	Identity string   `json:"identity"`
	Epoch    uint64   `json:"epoch"`          // epoch of its last life
	Life     string   `json:"life,omitempty"` // name of its last life
}

// First is the row of a directory's first life.
func First(h ids.Home, c Claim) Row {
	return Row{Home: h, Identity: c.Identity, Epoch: 1, Life: c.Life}
}

// Next is the row of the life that a claim begins. The register replaces the old row with it by compare-and-set. Next refuses a directory that is not
// the one in the row. If the row is this life's already, it is granted again.
func (r Row) Next(c Claim) (Row, error) {
	switch {
	case r.Identity == c.Identity && r.Life == c.Life && c.Life != "":
		return r, nil
	case c.Last == nil || c.Last.Home != r.Home || c.Identity != r.Identity:
		return r, errs.New(errs.CodeInvalid, "home %v is the one of node %s, not of node %s", r.Home, r.Identity, c.Identity)
	case c.Last.Epoch < r.Epoch:
		return r, Copied("home %v had its life %d, and this directory knows of %d: it is a copy, or was put back from one, and the node went on elsewhere", r.Home, r.Epoch, c.Last.Epoch)
	}
	return Row{Home: r.Home, Identity: r.Identity, Epoch: c.Last.Epoch + 1, Life: c.Life}, nil
}

// Copied is an ErrCopied that says how the copy was noticed.
func Copied(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrCopied, errs.New(errs.CodeInvalid, format, args...))
}
