package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/internal/machine"
	"mobula/internal/pidfd"
	"mobula/objectstore"
	"mobula/objectstore/index"
	"mobula/objectstore/segment"
	storeshell "mobula/objectstore/shell"
	spillshell "mobula/objectstore/spill/shell"
	"mobula/raylet/cluster"
	"mobula/raylet/owner"
	"mobula/remote/transfer"
	transfershell "mobula/remote/transfer/shell"
	"mobula/wire"
)

func (st *storeShell) deliver(ev objectstore.Event) { st.actor.Deliver(ev) }

// segment is a job's file of shared memory.
func (st *storeShell) segment(job ids.JobID) (*segment.Segment, error) { return st.shm.Segment(job) }

// segmentFor is the file of a client's job. It stays as long as the client, which was let in before.
func (st *storeShell) segmentFor(s *session) (*segment.Segment, error) {
	ctx, cancel := context.WithTimeout(st.life, admitTimeout)
	defer cancel()
	return st.actor.Segment(ctx, s.job)
}

// claim takes what another process may have, or that may be missing: the store's memory and the places to spill to. It comes before the node's life begins: a start
// in a copied directory that fails behind that has ended the life of the node that it was copied from, which may run. A kept node's segments are named files, which
// the next life finds.
func (st *storeShell) claim() (err error) {
	seg := segment.Config{Size: st.cfg.StoreBytes}
	if path := filepath.Join(st.cfg.StoreDir, st.segmentName()); st.lasting(path) {
		seg.Path = path
	}
	st.sweepSegments()
	if st.shm, err = storeshell.OpenMemory(seg, index.Owner{Boot: machine.Boot(), Node: st.identity, Dir: st.dir}); err != nil {
		err = fmt.Errorf("object store of %d bytes: %w", st.cfg.StoreBytes, err)
		if seg.Path != "" {
			err = fmt.Errorf("%w; give another directory (store.dir, --store-dir, MOBULA_STORE_DIR)", err)
		}
		return err
	}
	st.sizeLeft()
	if st.spiller, err = spillshell.Open(st.spillConfig(seg.Path != "")); err != nil {
		return fmt.Errorf("%w; give another (WithSpill, store.spill, --store-spill, MOBULA_STORE_SPILL)", err)
	}
	return nil
}

// start adds object store and spillers to the tree.
func (st *storeShell) start() error {
	sup, err := actors.Supervisor(st.sys, "objectstore", "objects", actors.Policy{MaxRestarts: 10, Window: time.Minute})
	if err != nil {
		return err
	}
	if err := st.spiller.Start(sup); err != nil {
		return err
	}
	cfg := objectstore.DefaultConfig(st.cfg.StoreBytes)
	cfg.SpillThreshold, cfg.ArgsFraction, cfg.FallbackBytes = st.cfg.SpillThreshold, st.cfg.ArgsFraction, st.cfg.DiskBudget
	cfg.Patience = st.cfg.StorePatience
	peers, err := st.openTransfer(sup)
	if err != nil {
		return err
	}
	st.actor, err = storeshell.Open(sup, storeshell.Options{
		Config: cfg, Memory: st.shm, Spiller: st.obs.Seen(st.faults.failing(st.spiller)),
		ToClient: st.toClient,
		ToOwner:  st.toOwner,
		Peers:    peers,
		Logger:   st.cfg.Logger,
		Policy:   actors.Policy{MaxRestarts: 20, Window: 10 * time.Second},
	})
	if err != nil {
		return err
	}
	return st.awaitOldClients()
}

// load is how much of the store's memory is taken.
func (st *storeShell) load() (_ cluster.Store, known bool) {
	ctx, cancel := context.WithTimeout(st.life, reportEvery)
	defer cancel()
	s, err := st.actor.Stats(ctx)
	return cluster.Store{Limit: s.Limit, Held: s.Held}, err == nil
}

// openTransfer lets objects move between this node and others, and gives it as the stores of others; nil: there are none.
func (st *storeShell) openTransfer(sup actors.Sup) (storeshell.Peers, error) {
	if st.links.alone() {
		return nil, nil
	}
	var err error
	st.objects, err = transfershell.Open(sup, transfershell.Options{
		Config: st.transferConfig(), Transport: st.cfg.Cluster.Objects, Store: st.deliver, Logger: st.cfg.Logger,
		Policy: actors.Policy{MaxRestarts: 20, Window: 10 * time.Second},
	})
	return st.objects, err
}

// transferConfig has the numbers of this life's fetches differ from those of every other.
func (st *storeShell) transferConfig() transfer.Config {
	cfg := transfer.DefaultConfig(st.numbers.Row().Home)
	cfg.First = st.numbers.Epoch() << epochShift
	return cfg
}

// sizeLeft takes the size that the store has, if what is in it keeps it from the one asked for, and tells of what was lost.
func (st *storeShell) sizeLeft() {
	st.asked, st.cfg.StoreBytes = st.cfg.StoreBytes, st.shm.Size()
	if st.shm.Kept != nil {
		st.cfg.Logger.Warn("the object store keeps the size that it had; the next start without what is in the way takes the new one",
			"size", st.cfg.StoreBytes, "asked", st.asked, "why", st.shm.Kept)
	}
	if st.shm.Removed != nil {
		st.cfg.Logger.Error("what an earlier node left of its objects cannot be used and was removed; they are made again where their tasks are known",
			"why", st.shm.Removed)
	}
	if k := st.shm.Index.Forgotten(); k > 0 {
		st.cfg.Logger.Warn("the memory of the node's last run cannot be used, since the machine was started anew or another release has made it: of the objects those with a spilled copy are read from there, others are made again where their tasks are known",
			"without_a_copy", k)
	}
}

// awaitOldClients reports the clients of a killed node to the store: gone when their
// process is, or when they have not come back in time. Until then what they may have
// pinned stays in place.
func (st *storeShell) awaitOldClients() error {
	if !st.shm.Found() {
		return nil
	}
	ctx, cancel := context.WithTimeout(st.life, st.cfg.StartTimeout)
	defer cancel()
	old, err := st.actor.OldClients(ctx)
	if err != nil {
		return err
	}
	for _, c := range old {
		st.work.Go(func() {
			pidfd.Await(st.life, int(c.PID), rejoinTimeout)
			if st.sessions.get(c.Client) == nil {
				st.deliver(objectstore.ClientGone{Client: c.Client})
			}
		})
	}
	return nil
}

// segmentName is the same for every life of a kept node, and no other's.
func (st *storeShell) segmentName() string { return segmentPrefix() + st.identity }

func segmentPrefix() string { return fmt.Sprintf("mobula-%d-", os.Getuid()) }

// lasting tells whether the store's objects outlive the process: of a node that may be started again. One that
// goes with its program takes over what one in the same directory has left.
func (st *storeShell) lasting(segment string) bool {
	if !st.cfg.Keep || !st.cfg.Bound {
		return st.cfg.Keep
	}
	return storeshell.MemoryAt(segment)
}

func (st *storeShell) spillConfig(lasting bool) spillshell.Config {
	cfg := spillshell.Default(st.segmentName())
	cfg.URLs, cfg.Dir = st.cfg.SpillURLs, filepath.Join(st.dir, "spill")
	cfg.Node = st.identity
	cfg.Restarts, cfg.Keep = lasting, lasting
	cfg.Logger = st.cfg.Logger
	return cfg
}

// toClient sends a client what the store has to say. The descriptor stays the store's: the
// message carries a copy, which goes when it was sent.
func (st *storeShell) toClient(id ids.ClientID, m wire.Msg, f *os.File) {
	s := st.sessions.get(id)
	if s == nil {
		return
	}
	if mf, ok := m.(*wire.MapFile); ok && f != nil && !s.IsLocal() {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			st.limited.warn("a file of the object store could not be passed on", "file", f.Name(), "err", err)
			return
		}
		c := *mf
		c.Opened = os.NewFile(uintptr(fd), f.Name())
		m = &c
	}
	s.Push(m)
	s.Flush()
}

// toOwner tells a job's owner what the store has to say. The store is there before the owners of the jobs that an earlier life of the node has
// left: what it has found of those waits for them.
func (st *storeShell) toOwner(job ids.JobID, m objectstore.OwnerMsg) {
	if st.owners.post(job, owner.FromStore{Node: st.numbers.Row().Home, Msg: m}) {
		return
	}
	if inv, ok := m.(objectstore.Inventory); ok {
		st.jobs.inventory(inv)
	}
}

// isEmpty tells whether the store has nothing that a next life of the node could want.
func (st *storeShell) isEmpty(ctx context.Context) bool {
	if st.actor == nil {
		return st.shm != nil && !st.shm.Found() // what an earlier life has left, this one has not looked at
	}
	s, err := st.actor.Stats(ctx)
	return err == nil && s.Objects == 0 && s.ObjectsSpilled == 0
}

// closeSpiller waits for what is being written.
func (st *storeShell) closeSpiller(ctx context.Context) error {
	if st.spiller == nil {
		return nil
	}
	return st.spiller.Close(ctx)
}

// closeMemory ends what outlives the store's actor, and keeps it for the next life, or does not.
func (st *storeShell) closeMemory(keep bool) error {
	if st.shm == nil {
		return nil
	}
	return st.shm.Close(!keep)
}
