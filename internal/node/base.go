package node

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"

	"mobula/actors"
	"mobula/internal/node/jobfile"
	"mobula/internal/node/observe"
	"mobula/internal/release"
	"mobula/internal/steady"
	"mobula/wire"
)

// base is what every part of a node runs with.
type base struct {
	cfg      Config // immutable but for the store's size, which is final once the store is open
	dir      string
	identity string // of all its lives; immutable
	clock    steady.Clock
	since    int64 // when it began; immutable
	limited  *limited
	obs      *observe.Observer
	files    *jobfile.Dir
	sys      *actors.System

	life    context.Context // ends when Close has stopped the tree
	end     context.CancelFunc
	work    sync.WaitGroup // goroutines of sessions and cold requests
	closing atomic.Bool    // Close has begun
}

// Name is the node's.
func (b *base) Name() string { return b.cfg.Name }

// SocketName is the name of a node's socket in its directory.
const SocketName = "node.sock"

// Address is the path of the node's socket.
func (b *base) Address() string { return filepath.Join(b.dir, SocketName) }

func (b *base) inlineBudget() int64 { return int64(float64(b.cfg.StoreBytes) * b.cfg.InlineFraction) }

// welcome is what a client is told of the node and itself when it is let in.
func (b *base) welcome(s *session, namespace string) *wire.Welcome {
	return &wire.Welcome{
		Version: wire.Version, Client: s.id, Node: b.cfg.Name, Job: s.job, Root: s.root,
		SegmentSize: b.cfg.StoreBytes, InlineMax: uint32(b.cfg.InlineMax), Namespace: namespace, Slots: int32(max(1, b.cfg.CPUs)),
		TraceMillionths: b.cfg.traceMillionths(), JobDir: b.files.Shared(s.job), Release: release.Version,
		Clock: b.clock.Offset(),
	}
}
