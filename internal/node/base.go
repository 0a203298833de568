package node

import (
	"path/filepath"

	"mobula/internal/errs"
	"mobula/internal/release"
	"mobula/wire"
)

// Name is the node's.
func (b *base) Name() string { return b.cfg.Name }

// SocketName is the name of a node's socket in its directory.
const SocketName = "node.sock"

// Address is the path of the node's socket.
func (b *base) Address() string { return filepath.Join(b.dir, SocketName) }

// errStopping is what clients are told of a node that stops in order.
func (b *base) errStopping() *errs.Error {
	return errs.New(errs.CodeShutdown, "node %s is stopping", b.cfg.Name)
}

func (b *base) inlineBudget() int64 { return int64(float64(b.cfg.StoreBytes) * b.cfg.InlineFraction) }

// welcome is what a client is told of the node and itself when it is let in.
func (b *base) welcome(s *session, namespace string) *wire.Welcome {
	return &wire.Welcome{
		Version: wire.Version, Client: s.id, Node: b.cfg.Name, Job: s.job, Root: s.root,
		SegmentSize: b.cfg.StoreBytes, InlineMax: uint32(b.cfg.InlineMax), Namespace: namespace, Slots: int32(max(1, b.cfg.CPUs)),
		TraceMillionths: b.cfg.traceMillionths(), JobDir: b.files.Shared(s.job), Release: release.Version,
		Clock: b.clock.Offset(), Straight: s.straight,
	}
}
