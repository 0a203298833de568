package register

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// ErrCopied is wrapped when a directory is a copy of a node's: two nodes with one identity would take each other's memory, spill
// files and names.
var ErrCopied = errors.New("the node's directory is a copy")

// A Register is the control plane's table of homes. Begin begins a life of a directory: it gives a new directory a home that nobody had
// before, and each life an epoch above those of all earlier lives. It waits for the control plane until ctx ends. If two lives claim the same
// epoch, one gets an error. To repeat a claim for the same life is harmless.
type Register interface {
	Begin(ctx context.Context, c Claim) (Row, error)
}

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

// Own is the register of a node that is its own control plane: the claim is all that is known.
type Own struct{}

// Begin believes the claim.
func (Own) Begin(_ context.Context, c Claim) (Row, error) {
	if c.Last == nil {
		return First(0, c), nil
	}
	return c.Last.Next(c)
}

// Memory is a register in this process. The zero value is empty.
type Memory struct {
	mu   sync.Mutex
	rows map[ids.Home]Row // guarded by mu
	next ids.Home         // guarded by mu
}

// Begin implements Register.
func (m *Memory) Begin(_ context.Context, c Claim) (Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil {
		m.rows = make(map[ids.Home]Row)
	}
	if c.Last == nil {
		for _, r := range m.rows {
			if r.Life == c.Life && r.Identity == c.Identity {
				return r, nil
			}
		}
		return m.put(First(m.next, c)), nil
	}
	r, ok := m.rows[c.Last.Home]
	if !ok { // the node was its own control plane, or this one has lost the row
		r = *c.Last
	}
	r, err := r.Next(c)
	if err != nil {
		return r, err
	}
	return m.put(r), nil
}

func (m *Memory) put(r Row) Row {
	m.rows[r.Home] = r
	m.next = max(m.next, r.Home+1)
	return r
}
