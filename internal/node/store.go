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
	"mobula/internal/pidfd"
	"mobula/objectstore"
	"mobula/objectstore/segment"
	"mobula/objectstore/spill"
	_ "mobula/objectstore/spill/cloud" // s3:// and mem:// targets
	"mobula/raylet/owner"
	"mobula/wire"
)

// startStore adds object store and spillers to the tree. A kept node's segment is a named
// file, which the next life finds.
func (n *Node) startStore() error {
	sup, err := actors.Supervisor(n.sys, "objectstore", "objects", actors.Policy{MaxRestarts: 10, Window: time.Minute})
	if err != nil {
		return err
	}
	seg := segment.Config{Size: n.cfg.StoreBytes}
	if path := filepath.Join(n.cfg.StoreDir, n.segmentName()); n.lasting(path) {
		seg.Path = path
	}
	var why error
	if n.shm, why, err = objectstore.OpenMemory(seg); err != nil {
		return fmt.Errorf("object store of %d bytes: %w", n.cfg.StoreBytes, err)
	}
	if why != nil {
		n.cfg.Logger.Warn("the objects of an earlier life of this node cannot be taken over; the store begins empty", "path", seg.Path, "err", why)
	}
	if n.spiller, err = spill.Open(n.spillConfig(sup, seg.Path != "")); err != nil {
		return err
	}
	cfg := objectstore.DefaultConfig(n.cfg.StoreBytes)
	cfg.SpillThreshold, cfg.ArgsFraction, cfg.FallbackBytes = n.cfg.SpillThreshold, n.cfg.ArgsFraction, n.cfg.DiskBudget
	cfg.Patience = n.cfg.StorePatience
	n.store, err = objectstore.Open(sup, objectstore.Options{
		Config: cfg, Memory: n.shm, Spiller: n.seen(n.spiller),
		ToClient: n.fromStore,
		ToOwner:  func(job ids.JobID, m any) { n.jobs.post(job, owner.FromStore{Msg: m}) },
		Logger:   n.cfg.Logger,
		Policy:   actors.Policy{MaxRestarts: 20, Window: 10 * time.Second},
	})
	if err != nil {
		return err
	}
	return n.awaitOldClients()
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

// segmentName is the same for every life of a kept node: it follows from its directory.
func (n *Node) segmentName() string {
	return fmt.Sprintf("mobula-%d-%s", os.Getuid(), fingerprint(n.dir))
}

// lasting tells whether the store's objects outlive the process: of a node that may be started again. One that
// goes with its program takes over what one in the same directory has left.
func (n *Node) lasting(segment string) bool {
	if !n.cfg.Keep || !n.cfg.Bound {
		return n.cfg.Keep
	}
	return objectstore.MemoryAt(segment)
}

func (n *Node) spillConfig(parent actors.Parent, lasting bool) spill.Config {
	cfg := spill.Default(n.segmentName())
	cfg.URLs, cfg.Dir = n.cfg.SpillURLs, filepath.Join(n.dir, "spill")
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
	if mf, ok := m.(*wire.MapFile); ok && f != nil && (mf.ReadOnly || !s.local()) {
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
