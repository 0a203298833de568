package shell

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/trust"
	"mobula/internal/trust/credentials"
	"mobula/remote"
)

// patience is how long opening the tables may take: servers of a set may have to elect a leader first.
func (g *GCS) patience() time.Duration {
	if g.cfg.Listen != nil || g.cfg.Live != nil || len(g.cfg.Servers) > 1 {
		return patience
	}
	return 10 * time.Second
}

// connect opens the tables, wherever they are.
func (g *GCS) connect() (err error) {
	ctx, cancel := context.WithTimeout(g.ctx, g.patience())
	defer cancel()
	switch {
	case g.cfg.Tables != nil:
		g.tables = g.cfg.Tables
		return nil
	case len(g.cfg.Servers) > 0 && g.cfg.Live != nil:
		if g.nc, err = dialCluster(g.cfg.Servers, g.cfg.Live, g.cfg.Dialer, g.cfg.Node); err != nil {
			return fmt.Errorf("control plane: %w", err)
		}
		g.nc.SetErrorHandler(g.heardError)
		g.served = NewServed(g.nc, g.cfg.Live.Name().Home)
		g.served.Life(g.cfg.Epoch)
		g.tables = g.served
		return nil
	case len(g.cfg.Servers) > 0:
		g.nc, err = dial(g.cfg.Servers, g.cfg.Node)
	default:
		if g.srv, err = StartServer(ServerConfig{Dir: g.cfg.Dir, Name: g.cfg.Node, Logger: g.cfg.Logger, Listen: g.cfg.Listen}); err == nil {
			g.nc, err = g.srv.Connect(g.cfg.Node)
		}
	}
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	g.nc.SetErrorHandler(g.heardError)
	if g.cfg.Listen != nil {
		err = g.openShared(ctx)
	} else {
		var tables *KV
		if tables, err = Open(ctx, g.nc, replicas(len(g.cfg.Servers))); err == nil {
			tables.patient = g.srv == nil // a set of servers elsewhere elects a leader when one is lost
			g.tables = tables
			err = g.openTrust(ctx, tables)
		}
	}
	if err != nil {
		return errs.New(errs.CodeComponentFailed, "control plane: %v", g.unled(err))
	}
	if g.service, err = g.serveQuestions(); err != nil {
		return err
	}
	switch {
	case g.cfg.Listen != nil:
		return g.openDesk(ctx)
	case g.cfg.Judges:
		return newDesk(g.tables, nil, g.accused).hear(g.service) // nodes reach the tables by themselves
	}
	return nil
}

// heardError takes what the client of NATS meets beside its calls, and mends by itself. Without a handler it prints that to standard error.
func (g *GCS) heardError(_ *nats.Conn, of *nats.Subscription, err error) {
	if g.cfg.Logger == nil {
		return
	}
	subject := ""
	if of != nil {
		subject = of.Subject
	}
	g.cfg.Logger.Info("the connection to the control plane had a fault", "subject", subject, "err", err)
}

// unled adds to the error of tables that do not answer how many of the set's servers this one has reached, if too few are there to elect a leader.
func (g *GCS) unled(err error) error {
	if g.cfg.Listen == nil || g.srv == nil {
		return err
	}
	reached, all := 1+g.srv.ns.NumRemotes(), 1+len(g.cfg.Listen.Others)
	if 2*reached > all {
		return err
	}
	return fmt.Errorf("of the cluster's %d control-plane servers %d are there, this one included, and it takes %d: start more of those at %v (%w)",
		all, reached, all/2+1, g.cfg.Listen.Others, err)
}

// openTrust opens the authority's table beside tables that other servers carry, on a node of a cluster.
func (g *GCS) openTrust(ctx context.Context, tables *KV) error {
	if !g.cfg.Judges && g.cfg.Bundled == nil {
		return nil
	}
	t, err := OpenTrust(ctx, g.nc, replicas(len(g.cfg.Servers)))
	if err != nil {
		return err
	}
	tables.bundle = true
	if g.cfg.Judges {
		g.trust = t
	}
	return nil
}

// openShared opens the tables of a cluster that this server is one of, and the authority's.
func (g *GCS) openShared(ctx context.Context) error {
	js, err := jetstream.New(g.nc)
	if err != nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	tables := &KV{kv: make(map[gcs.Bucket]jetstream.KeyValue), removed: markerTTL, patient: true, bundle: true, beats: true}
	if tables.js, err = g.nc.JetStream(); err != nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	for _, b := range shared {
		if tables.kv[b], err = findOrMake(ctx, js, name(b)); err != nil {
			return fmt.Errorf("table %s: %w", b, err)
		}
	}
	kv, err := findOrMake(ctx, js, trustBucket)
	if err != nil {
		return fmt.Errorf("table of the authority: %w", err)
	}
	if g.trust, err = newTrust(kv, g.nc); err != nil {
		return err
	}
	g.tables = tables
	return g.carry(ctx)
}

// shared are the tables that the servers of a cluster keep, but for the authority's.
var shared = append(slices.Clone(gcs.Buckets), gcs.Beats)

// findOrMake finds a bucket, however many copies it has, or makes it with one. It asks until the servers have a leader that answers.
func findOrMake(ctx context.Context, js jetstream.JetStream, bucketName string) (kv jetstream.KeyValue, err error) {
	err = untilReady(ctx, func() (err error) {
		attempt, cancel := context.WithTimeout(ctx, attemptTime)
		defer cancel()
		if kv, err = js.KeyValue(attempt, bucketName); errors.Is(err, jetstream.ErrBucketNotFound) {
			kv, err = js.CreateKeyValue(attempt, bucket(bucketName, 1, markerTTL))
		}
		return err
	})
	return kv, err
}

// openDesk has this server answer nodes that may not touch the tables, and tell them of changes.
func (g *GCS) openDesk(ctx context.Context) (err error) {
	tables := g.tables.(*KV)
	server := g.srv.ns.Name()
	if g.feed, err = startFeed(ctx, g.nc, server, tables); err != nil {
		return fmt.Errorf("control plane: %w", g.unled(err))
	}
	g.tables = &carried{tables, g.feed, &wrote{}}
	g.desk = newDesk(tables, g.feed, g.accused)
	if err := g.desk.open(g.service, server); err != nil {
		return fmt.Errorf("control plane: service: %w", err)
	}
	if g.gathering, err = gather(g.nc, tables, server); err != nil {
		return fmt.Errorf("control plane: heartbeats: %w", err)
	}
	g.wg.Go(func() { g.gathering.run(g.ctx) })
	return nil
}

// accused passes an accusation on to the judge.
func (g *GCS) accused(ev gcs.Accused) {
	<-g.up
	g.ref.Deliver(ev)
}

// dialCluster connects to the servers of a cluster. Once it was connected it knows all of them, and tries to reconnect for ever.
func dialCluster(servers []string, live *credentials.Live, dialer net.Dialer, name string) (*nats.Conn, error) {
	opts := nats.GetDefaultOptions()
	for _, address := range servers {
		opts.Servers = append(opts.Servers, "tls://"+address)
	}
	w := &serverWatch{live: live}
	for _, set := range []nats.Option{
		nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.Timeout(greetingTime), nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(pingNodeEvery), nats.MaxPingsOutstanding(pingsLost), nats.ReconnectJitter(0, 250*time.Millisecond),
		nats.Secure(w.noting(live.Config(credentials.Peer{May: trust.CarryTables}))), nats.TLSHandshakeFirst(), nats.CustomInboxPrefix(answers(live.Name().Home)),
	} {
		if err := set(&opts); err != nil {
			return nil, errs.New(errs.CodeInvalid, "%v", err)
		}
	}
	if dialer.LocalAddr != nil { // else NATS makes its own, which divides the time among the addresses of a name
		dialer.Timeout = greetingTime
		opts.CustomDialer = &dialer
	}
	opts.ConnectedCB, opts.ReconnectedCB = w.begin, w.begin
	opts.DisconnectedErrCB = func(*nats.Conn, error) { w.end() }
	opts.ClosedCB = func(*nats.Conn) { w.end() }
	nc, err := opts.Connect()
	if err != nil {
		return nil, errs.New(errs.CodeNoNode, "no control-plane server of the cluster answers at %v: %v", servers, err)
	}
	return nc, nil
}

// serverWatch has a node leave the server that it is connected to when the server's certificate counts no more.
type serverWatch struct {
	live *credentials.Live
	mu   sync.Mutex
	met  tls.ConnectionState // guarded by mu: of the last handshake
	done func()              // guarded by mu: of the present connection; nil: there is none
}

// noting notes who is at the other end of each connection. The client has it too, but reads its own state for that without a lock.
func (w *serverWatch) noting(cfg *tls.Config) *tls.Config {
	check := cfg.VerifyConnection
	cfg.VerifyConnection = func(cs tls.ConnectionState) error {
		err := check(cs)
		if err == nil {
			w.mu.Lock()
			w.met = cs
			w.mu.Unlock()
		}
		return err
	}
	return cfg
}

// begin watches a connection that was just made: another handshake comes only after its end.
func (w *serverWatch) begin(nc *nats.Conn) {
	w.end()
	w.mu.Lock()
	cs := w.met
	w.mu.Unlock()
	leave := func(error) { _ = nc.ForceReconnect() } // one that is closed needs no other
	done, err := w.live.Track(cs, leave)
	if err != nil {
		leave(err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = done
}

func (w *serverWatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done != nil {
		w.done()
		w.done = nil
	}
}

// Trust is the table of the cluster's authority, on a control-plane server; else nil.
func (g *GCS) Trust() *Trust { return g.trust }

// Servers are the addresses of all servers that are known now, this node's own among them: what a node keeps, to find one of them at its next start.
func (g *GCS) Servers() []string {
	if g.nc == nil {
		return nil
	}
	return g.nc.Servers()
}

// Connected tells whether a server answers now.
func (g *GCS) Connected() bool { return g.nc != nil && g.nc.IsConnected() }

// Accuse tells the judges that this node does not hear a life. They decide; the tables of a single node have none.
func (g *GCS) Accuse(l remote.Life) {
	switch {
	case g.served != nil:
		_ = accuse(g.nc, g.served.home, l) // who is not heard asks again
	case g.cfg.Listen != nil:
		_ = accuse(g.nc, g.cfg.Listen.Live().Name().Home, l)
	case g.nc != nil:
		g.mu.Lock()
		self := g.self
		g.mu.Unlock()
		if self != nil {
			_ = accuse(g.nc, self.Record.Home, l)
		}
	}
}
