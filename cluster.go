package mobula

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"mobula/chaos"
	"mobula/internal/call"
	"mobula/internal/join"
)

// Cluster is a program's connection to the runtime: to a node inside the process (Start) or to one that
// runs on its own (Connect). It is safe for concurrent use.
type Cluster struct {
	session *join.Session
	faults  *chaos.Plan // nil: none

	once sync.Once
	err  error // of closing; written in once
}

// Start runs a whole node inside this process, and joins it. It is ready when Start
// returns. Close ends it.
func Start(ctx context.Context, opts ...StartOption) (*Cluster, error) {
	cfg, err := configOf(opts)
	if err != nil {
		return nil, err
	}
	s, err := join.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Cluster{session: s, faults: cfg.Faults}, nil
}

// Connect joins a node that is running on this machine. The address is the node's socket or its directory. If it is empty,
// Connect takes MOBULA_ADDRESS, else the node in MOBULA_DIR, else the one that `mobula start` started for this user.
//
// An address HOST:PORT is that of a cluster on other machines: Connect starts a node in this process, which joins the cluster with a token
// (ConnectToken, or MOBULA_TOKEN) and runs no work of others. The cluster's nodes must be able to reach this machine.
func Connect(ctx context.Context, address string, opts ...ConnectOption) (*Cluster, error) {
	var cfg connectConfig
	for _, set := range opts {
		if err := set(&cfg); err != nil {
			return nil, err
		}
	}
	return connect(ctx, address, cfg)
}

func connect(ctx context.Context, address string, cfg connectConfig) (*Cluster, error) {
	s, err := join.Connect(ctx, address, cfg)
	if err != nil {
		return nil, err
	}
	return &Cluster{session: s}, nil
}

// Context binds ctx to the cluster: calls made with the context that it gives, or with one derived
// from that, go to c.
func (c *Cluster) Context(ctx context.Context) context.Context {
	return c.session.Context(ctx)
}

// Address is what other programs of this user give Connect to join the node.
func (c *Cluster) Address() string { return c.session.Address }

// Node is the node's name.
func (c *Cluster) Node() string { return c.session.Node }

// Faults is the plan given with WithFaults, or nil.
//
// Experimental: faults may change in any release.
func (c *Cluster) Faults() *chaos.Plan { return c.faults }

// Close leaves the cluster: the job ends, with its objects and its actors that are not detached. A node
// that Start made ends too. When Close returns, at the latest when ctx ends, no goroutine is left. A
// second Close gives the same result.
func (c *Cluster) Close(ctx context.Context) error {
	c.once.Do(func() { c.err = c.session.Leave(ctx) })
	return c.err
}

// Main is the whole main function of a program. If the process was started as a worker, Main serves as one.
// Otherwise it joins the node of MOBULA_ADDRESS (of opts only WithPython counts then), or starts one inside the
// process, runs body, and closes. It prints an error of body and exits with code 1; nowhere else does the
// package call os.Exit.
func Main(body func(ctx context.Context, c *Cluster) error, opts ...StartOption) {
	if WorkerMain() {
		return
	}
	if err := run(context.Background(), body, opts); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, body func(ctx context.Context, c *Cluster) error, opts []StartOption) (err error) {
	var c *Cluster
	if addr := os.Getenv(envAddress); addr != "" {
		var cfg startConfig
		if cfg, err = configOf(opts); err == nil {
			c, err = connect(ctx, addr, connectConfig{Python: cfg.Python})
		}
	} else {
		c, err = Start(ctx, slices.Concat([]StartOption{WithWorkerOutput(os.Stderr)}, opts)...)
	}
	if err != nil {
		return err
	}
	defer func() {
		if e := c.Close(ctx); e != nil && err == nil {
			err = e
		}
	}()
	return body(c.Context(ctx), c)
}

const envAddress = "MOBULA_ADDRESS"

// WorkerMain serves as a worker process if this process was started as one, and then returns
// true: the program should return from main. Otherwise it returns false at once. A program that
// does not use Main calls it first, so that its executable can serve as its workers' too.
func WorkerMain() bool {
	call.CollectWhenIdle(true)
	is, err := join.Worker(context.Background())
	call.CollectWhenIdle(false)
	if err != nil && !errors.Is(err, ErrDisconnected) { // the node is gone, or going: its log says why
		fmt.Fprintln(os.Stderr, "mobula worker:", err)
	}
	return is
}
