package home

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/safefs"
)

const (
	fileName  = "home"
	epochName = "epoch" // the file of release 0.4, which counts lives
)

// Config describes the node whose home it is.
type Config struct {
	Dir          string // of the node; empty: nothing is kept
	Identity     string
	IdentityFile string // of Dir, written once
	Register     Register
	LastJob      uint64                               // highest job number known to have been given out
	Write        func(path string, data []byte) error // replaces a file durably; nil: safefs.Replace
	Moved        bool                                 // accept a copied directory: its original is gone
	Ready        func() error                         // called once the directory was read, before the life begins; nil: nothing else has to be ready
}

// Home is a node's home in its present life. It is safe for concurrent use.
type Home struct {
	path  string
	save  func(path string, data []byte) error
	row   register.Row
	place Place

	disk sync.Mutex // of the file; taken before mu

	mu      sync.Mutex
	ledger  ledger // guarded by mu
	writing bool   // guarded by mu: a block is being reserved in the background
	closed  bool   // guarded by mu: another node may have the directory now
	work    sync.WaitGroup
}

// file is the format on disk.
type file struct {
	register.Row
	Place    Place             `json:"place"`
	Reserved map[string]uint64 `json:"reserved"`           // the last number that may have been given out
	Intended string            `json:"intended,omitempty"` // the life after that of Row that a register was asked to begin; empty: none
}

// Open begins a life.
func Open(ctx context.Context, cfg Config) (*Home, error) {
	h := &Home{save: cfg.Write}
	if h.save == nil {
		h.save = safefs.Replace
	}
	claim := register.Claim{Identity: cfg.Identity, Life: rand.Text()}
	if cfg.Dir != "" {
		h.path = filepath.Join(cfg.Dir, fileName)
		if err := h.read(cfg, &claim); err != nil {
			return nil, err
		}
	}
	if cfg.Ready != nil {
		if err := cfg.Ready(); err != nil {
			return nil, err
		}
	}
	if err := h.begin(ctx, cfg.Register, claim); err != nil {
		return nil, err
	}
	h.ledger.used(Jobs, cfg.LastJob)
	if err := h.reserve(); err != nil {
		return nil, err
	}
	if cfg.Dir != "" { // the file of release 0.4 would be from a life long ago
		_ = os.Remove(filepath.Join(cfg.Dir, epochName)) // it is no longer read
	}
	return h, nil
}

// begin asks the register to begin the life. For a register elsewhere it first writes the life to disk: if the answer is lost, the next try asks
// for the same life, and is not taken for a copy of the directory.
func (h *Home) begin(ctx context.Context, r Register, claim register.Claim) (err error) {
	if _, own := r.(Own); !own {
		last := register.Row{Identity: claim.Identity}
		if claim.Last != nil {
			last = *claim.Last
		}
		if err := h.write(file{Row: last, Place: h.place, Reserved: named(h.ledger.reserved), Intended: claim.Life}); err != nil {
			return err
		}
	}
	h.row, err = r.Begin(ctx, claim)
	return err
}

// read reads the state of the life before into the claim for this one.
func (h *Home) read(cfg Config, claim *register.Claim) (err error) {
	if h.place, err = placeOf(cfg.IdentityFile); err != nil {
		return errs.New(errs.CodeInvalid, "node directory: %v", err)
	}
	b, err := safefs.ReadFile(h.path)
	if errors.Is(err, fs.ErrNotExist) {
		claim.Last, err = h.readEpoch(cfg)
		return err
	}
	var f file
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err == nil {
		h.ledger.reserved, err = unnamed(f.Reserved)
		h.ledger.last = h.ledger.reserved
	}
	if err == nil && f.Home > ids.MaxHome {
		err = fmt.Errorf("home %d is above %d", f.Home, ids.MaxHome)
	}
	if err != nil {
		return errs.New(errs.CodeInvalid, "%s, which tells what ids the node has given out: %v; put it back as it was, or give the node another directory", h.path, err)
	}
	if f.Identity != cfg.Identity {
		return errs.New(errs.CodeInvalid, "%s is of node %s, and %s says that this is node %s: put back the one that was there before", h.path, f.Identity, cfg.IdentityFile, cfg.Identity)
	}
	if !f.Place.same(h.place) && !cfg.Moved {
		return register.Copied("%s was copied here from another place, or put back from a copy: two nodes with the identity %s would take each other's spill files and names. "+
			"Where the first is gone for good, start once with mobula start --moved; else give this node a directory of its own", cfg.Dir, cfg.Identity)
	}
	if f.Intended != "" {
		claim.Life = f.Intended
	}
	if f.Epoch > 0 { // else its first life had not begun
		claim.Last = &f.Row
	}
	return nil
}

// readEpoch reads the file of release 0.4: the number of lives, which earlier releases began at the wall clock. It is nil for a new directory. In a
// directory with jobs a missing file means that the file home is lost, and with it which ids were given out.
func (h *Home) readEpoch(cfg Config) (*register.Row, error) {
	path := filepath.Join(cfg.Dir, epochName)
	b, err := safefs.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && cfg.LastJob == 0 {
		return nil, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errs.New(errs.CodeInvalid, "%s, which tells what ids the node has given out, is missing, and the directory has jobs up to %d: put it back as it was, "+
			"or remove the directories owner, jobs and lost beside it, and lose them", h.path, cfg.LastJob)
	}
	if err != nil {
		return nil, errs.New(errs.CodeInvalid, "node directory: %v", err)
	}
	life, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 32)
	if err != nil {
		return nil, errs.New(errs.CodeInvalid, "%s holds %q where the number of the node's last start should be: put back what it was, or give the node another directory", path, b)
	}
	return &register.Row{Identity: cfg.Identity, Epoch: life}, nil
}

// Row is the home's row in the register.
func (h *Home) Row() register.Row { return h.row }

// Epoch is the life's number: 1 for the first.
func (h *Home) Epoch() uint64 { return h.row.Epoch }

// Next gives out an id that was never given out before.
func (h *Home) Next(k Kind) (uint64, error) {
	h.mu.Lock()
	n, ok := h.ledger.next(k)
	h.mu.Unlock()
	if !ok {
		if err := h.more(k); err != nil {
			return 0, err
		}
		return h.Next(k)
	}
	h.reserveAhead(k)
	return h.row.Home.ID(n), nil
}

// Last is the last id of a kind that may have been given out.
func (h *Home) Last(k Kind) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.row.Home.ID(h.ledger.last[k])
}

// Used notes an id that a component which counts from Last has given out. It is on disk when Used returns without an error. Ids of another home are
// ignored.
func (h *Home) Used(k Kind, id uint64) error {
	if id>>ids.NumberBits != uint64(h.row.Home) {
		return nil
	}
	h.mu.Lock()
	ok := h.ledger.used(k, id&ids.MaxNumber)
	h.mu.Unlock()
	if !ok {
		return h.more(k)
	}
	h.reserveAhead(k)
	return nil
}

// more reserves the next block of a kind, if there are numbers left.
func (h *Home) more(k Kind) error {
	h.mu.Lock()
	closed, left := h.closed, h.ledger.last[k] < ids.MaxNumber
	h.mu.Unlock()
	switch {
	case closed:
		return errs.New(errs.CodeShutdown, "the node is stopping")
	case !left:
		return errs.New(errs.CodeInvalid, "home %v has given out %d ids of %v, all there are: give the node a new directory", h.row.Home, ids.MaxNumber, k)
	}
	return h.reserve()
}

// reserveAhead reserves the next block ahead of need. If that fails, the present block lasts for some time.
func (h *Home) reserveAhead(k Kind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.path == "" || h.closed || h.writing || !h.ledger.low(k) {
		return
	}
	h.writing = true
	h.work.Go(func() {
		_ = h.reserve() // else the next number tries again
		h.mu.Lock()
		h.writing = false
		h.mu.Unlock()
	})
}

// reserve writes a block of each kind to disk, above the numbers given out.
func (h *Home) reserve() error {
	h.disk.Lock()
	defer h.disk.Unlock()
	h.mu.Lock()
	ahead, closed := h.ledger.nextReserve(), h.closed
	h.mu.Unlock()
	if closed {
		return errs.New(errs.CodeShutdown, "the node is stopping")
	}
	if err := h.write(h.file(ahead)); err != nil {
		return err
	}
	h.mu.Lock()
	h.ledger.reserved = ahead
	h.mu.Unlock()
	return nil
}

func (h *Home) file(reserved [kinds]uint64) file {
	return file{Row: h.row, Place: h.place, Reserved: named(reserved)}
}

func (h *Home) write(f file) error {
	if h.path == "" {
		return nil
	}
	b, err := json.Marshal(f)
	if err == nil {
		err = h.save(h.path, append(b, '\n'))
	}
	if err != nil {
		return errs.New(errs.CodeInvalid, "node directory: %v", err)
	}
	return nil
}

// Close gives back reserved numbers that are not used. Afterwards nothing is given out or written.
func (h *Home) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.work.Wait()
	h.disk.Lock()
	defer h.disk.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ledger.reserved = h.ledger.last
	return h.write(h.file(h.ledger.last))
}
