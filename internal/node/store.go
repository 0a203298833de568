package node

import (
	"context"
	"errors"
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
	"mobula/raylet/owner"
	"mobula/wire"
)

// startStore adds object store and spillers to the tree. A kept node's segments are named
// files, which the next life finds.
func (n *Node) startStore() error {
	sup, err := actors.Supervisor(n.sys, "objectstore", "objects", actors.Policy{MaxRestarts: 10, Window: time.Minute})
	if err != nil {
		return err
	}
	seg := segment.Config{Size: n.cfg.StoreBytes}
	if path := filepath.Join(n.cfg.StoreDir, n.segmentName()); n.lasting(path) {
		seg.Path = path
	}
	n.sweepSegments()
	if n.shm, err = storeshell.OpenMemory(seg, index.Owner{Boot: machine.Boot(), Node: n.identity, Dir: n.dir}); err != nil {
		err = fmt.Errorf("object store of %d bytes: %w", n.cfg.StoreBytes, err)
		if seg.Path != "" {
			err = fmt.Errorf("%w; give another directory (store.dir, --store-dir, MOBULA_STORE_DIR)", err)
		}
		return err
	}
	n.sizeLeft()
	if n.spiller, err = spillshell.Open(n.spillConfig(sup, seg.Path != "")); err != nil {
		return fmt.Errorf("%w; give another (WithSpill, store.spill, --store-spill, MOBULA_STORE_SPILL)", err)
	}
	cfg := objectstore.DefaultConfig(n.cfg.StoreBytes)
	cfg.SpillThreshold, cfg.ArgsFraction, cfg.FallbackBytes = n.cfg.SpillThreshold, n.cfg.ArgsFraction, n.cfg.DiskBudget
	cfg.Patience = n.cfg.StorePatience
	n.store, err = storeshell.Open(sup, storeshell.Options{
		Config: cfg, Memory: n.shm, Spiller: n.obs.Seen(n.failing(n.spiller)),
		ToClient: n.fromStore,
		ToOwner:  n.storeToOwner,
		Logger:   n.cfg.Logger,
		Policy:   actors.Policy{MaxRestarts: 20, Window: 10 * time.Second},
	})
	if err != nil {
		return err
	}
	return n.awaitOldClients()
}

// sizeLeft takes the size that the store has, if what is in it keeps it from the one asked for, and tells of what was lost.
func (n *Node) sizeLeft() {
	n.asked, n.cfg.StoreBytes = n.cfg.StoreBytes, n.shm.Size()
	if n.shm.Kept != nil {
		n.cfg.Logger.Warn("the object store keeps the size that it had; the next start without what is in the way takes the new one",
			"size", n.cfg.StoreBytes, "asked", n.asked, "why", n.shm.Kept)
	}
	if n.shm.Removed != nil {
		n.cfg.Logger.Error("what an earlier node left of its objects cannot be used and was removed; they are made again where their tasks are known",
			"why", n.shm.Removed)
	}
	if k := n.shm.Index.Forgotten(); k > 0 {
		n.cfg.Logger.Warn("the memory of the node's last run cannot be used, since the machine was started anew or another release has made it: of the objects those with a spilled copy are read from there, others are made again where their tasks are known",
			"without_a_copy", k)
	}
}

// awaitOldClients reports the clients of a killed node to the store: gone when their
// process is, or when they have not come back in time. Until then what they may have
// pinned stays in place.
func (n *Node) awaitOldClients() error {
	if !n.shm.Found() {
		return nil
	}
	ctx, cancel := context.WithTimeout(n.life, n.cfg.StartTimeout)
	defer cancel()
	old, err := n.store.OldClients(ctx)
	if err != nil {
		return err
	}
	for _, c := range old {
		n.work.Go(func() {
			pidfd.Await(n.life, int(c.PID), rejoinTimeout)
			if n.clients.get(c.Client) == nil {
				n.toStore(objectstore.ClientGone{Client: c.Client})
			}
		})
	}
	return nil
}

// segmentName is the same for every life of a kept node, and no other's.
func (n *Node) segmentName() string { return segmentPrefix() + n.identity }

func segmentPrefix() string { return fmt.Sprintf("mobula-%d-", os.Getuid()) }

// lasting tells whether the store's objects outlive the process: of a node that may be started again. One that
// goes with its program takes over what one in the same directory has left.
func (n *Node) lasting(segment string) bool {
	if !n.cfg.Keep || !n.cfg.Bound {
		return n.cfg.Keep
	}
	return storeshell.MemoryAt(segment)
}

func (n *Node) spillConfig(parent actors.Parent, lasting bool) spillshell.Config {
	cfg := spillshell.Default(n.segmentName())
	cfg.URLs, cfg.Dir = n.cfg.SpillURLs, filepath.Join(n.dir, "spill")
	cfg.Node = n.identity
	cfg.Restarts, cfg.Keep = lasting, lasting
	cfg.Parent, cfg.Logger = parent, n.cfg.Logger
	return cfg
}

// fromStore sends a client what the store has to say. The descriptor stays the store's: the
// message carries a copy, which goes when it was sent.
func (n *Node) fromStore(id ids.ClientID, m wire.Msg, f *os.File) {
	s := n.clients.get(id)
	if s == nil {
		return
	}
	if mf, ok := m.(*wire.MapFile); ok && f != nil && !s.local() {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			n.limited.warn("a file of the object store could not be passed on", "file", f.Name(), "err", err)
			return
		}
		c := *mf
		c.Opened = os.NewFile(uintptr(fd), f.Name())
		m = &c
	}
	s.Push(m)
	s.Flush()
}

// storeToOwner tells a job's owner what the store has to say. The store is there before the owners of the jobs that an earlier life of the node has
// left: what it has found of those waits for them.
func (n *Node) storeToOwner(job ids.JobID, m objectstore.OwnerMsg) {
	if o := n.owners.get(job); o != nil {
		o.ref.Deliver(owner.FromStore{Msg: m})
	} else if inv, ok := m.(objectstore.Inventory); ok {
		n.jobs.inventory(inv)
	}
}

// isEmpty tells whether the store has nothing that a next life of the node could want.
func (n *Node) isEmpty(ctx context.Context) bool {
	if n.store == nil {
		return false // whatever is there, this life has not looked at it
	}
	s, err := n.store.Stats(ctx)
	return err == nil && s.Objects == 0 && s.ObjectsSpilled == 0
}

// closeStore ends what outlives the store's actor. The segment stays mapped where something in this
// process may read it still: to pull it away would end the process.
func (n *Node) closeStore(unmap, keep bool) error {
	var all []error
	if unmap {
		all = append(all, n.mapped.close())
	}
	if n.shm != nil {
		all = append(all, n.shm.Close(!keep))
	}
	return errors.Join(all...)
}
