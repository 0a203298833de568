package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	gcsshell "mobula/gcs/shell"
	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/node/enrol"
	"mobula/internal/node/nodeport"
	"mobula/internal/trust"
	"mobula/internal/trust/authority"
	"mobula/internal/trust/credentials"
	"mobula/internal/trust/join"
)

// on tells whether the node is of a cluster on a network.
func (w *wired) on() bool { return w.cfg.Wires != nil }

// open takes the addresses, and reads what the directory knows of the cluster.
func (w *wired) open() (err error) {
	if !w.on() {
		return nil
	}
	c, err := w.cfg.Wires.kept(w.dir)
	if err != nil {
		return err
	}
	if w.at, err = c.addresses(); err != nil {
		return err
	}
	if w.listener, err = nodeport.Listen(w.at.listen); err != nil {
		return err
	}
	w.at.port[portNodes] = w.listener.Addr().(*net.TCPAddr).Port
	for i := range w.at.port {
		def(&w.at.port[i], w.at.port[portNodes]) // of a node with one port: nobody gossips with it, and it carries no tables
	}
	if w.control.elsewhere() {
		w.at.port[portGCS], w.at.port[portRoutes] = 0, 0
	}
	w.member, err = enrol.Open(enrol.Config{
		Dir: w.dir, Node: w.cfg.Name, Cluster: c.Cluster, Role: c.Role, Join: withPorts(c.Join), Token: c.Token, Wall: c.Wall,
		Listener: w.listener, Address: w.at.shown(portNodes),
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return c.Dialer.DialContext(ctx, "tcp", address)
		},
	})
	if err != nil {
		return err
	}
	if err := w.at.free(w.member.Role()); err != nil {
		return err
	}
	return c.keep(w.dir)
}

// IsOfCluster tells whether a node's directory is of a cluster: a start without further words brings the node back into it.
func IsOfCluster(dir string) bool { return enrol.Entered(dir) }

// ID is the node's id, by which tasks may choose it.
func (n *Node) ID() string { return n.numbers.Row().Home.String() }

// ClusterAddress is where other nodes reach this one; empty: nowhere.
func (n *Node) ClusterAddress() string {
	if !n.wired.on() {
		return ""
	}
	return n.wired.at.shown(portNodes)
}

// Role is what the node is in its cluster; empty: it is of none.
func (n *Node) Role() string {
	if !n.wired.on() {
		return ""
	}
	return string(n.wired.member.Role())
}

// Begin begins the node's life in its cluster: it founds the cluster, joins it, or comes back. It implements home.Register.
func (w *wired) Begin(ctx context.Context, claim register.Claim) (row register.Row, err error) {
	w.claim = claim
	joins, err := w.joins(ctx)
	if err != nil {
		return row, err
	}
	if joins {
		if row, err = w.member.Join(ctx, claim); err == nil {
			err = w.agreeOnTables()
		}
		if err == nil {
			err = w.control.connect(row.Epoch)
		}
		return row, err
	}
	if err := w.agreeOnTables(); err != nil {
		return row, err
	}
	if w.serves() {
		if _, err := w.member.Secret(); err != nil { // from which the id of a new cluster follows
			return row, err
		}
	}
	if err := w.control.connect(0); err != nil {
		return row, err
	}
	if row, err = (gcsshell.Register{GCS: w.control.g, Node: w.cfg.Name}).Begin(ctx, claim); err != nil || w.member.In() {
		return row, err
	}
	a, err := w.authorityOf()
	if err != nil {
		return row, err
	}
	if err := w.member.Found(ctx, a, cmp.Or(w.cfg.Wires.Cluster, defaultCluster), row); err != nil {
		return row, err
	}
	keys, err := a.GossipKeys(ctx)
	if err != nil {
		return row, err
	}
	return row, w.member.Learn(join.Enrolment{GossipKeys: keys, Servers: []join.Addresses{serverAt(w.at.all())}})
}

// returnTime bounds what a node that comes back waits for a server that renews its certificate. After that it tries what it has.
const returnTime = 10 * time.Second

// joins tells whether the node is to join with its token. One that is of the cluster comes back by its certificate, and renews that first: it may have expired
// while the node was off, and a server says at once why it lets a node in no more. A node that was revoked, or off for too long, joins again if it has a token;
// so does one whose directory was made another node's, by the removal of its identity.
func (w *wired) joins(ctx context.Context) (bool, error) {
	switch {
	case !w.member.In():
		return w.member.Joins(), nil
	case w.serves():
		return false, w.member.Recertify(ctx, authority.DefaultConfig(nil, authority.Secret{}, w.cfg.Wires.Wall, w.clock.Now))
	}
	ctx, cancel := context.WithTimeout(ctx, returnTime)
	defer cancel()
	err := w.member.Renew(ctx, w.claim)
	switch {
	case err == nil:
		return false, nil
	case w.cfg.Wires.Token != "" && (errors.Is(err, trust.ErrRevoked) || errors.Is(err, trust.ErrExpired) || errors.Is(err, trust.ErrNode)):
		return true, nil
	case errors.Is(err, errs.ErrPermission) && !errors.Is(err, trust.ErrClock): // with a clock that was set back it goes by what it has
		return false, err
	}
	w.cfg.Logger.Info("no server has renewed the node's certificate at its start", "err", err)
	return false, nil
}

// gcs is how the node is of its control plane; epoch is that of its life, 0: it has not begun.
func (w *wired) gcs(epoch uint64) gcsshell.Config {
	cfg := gcsshell.Config{Node: w.cfg.Name, Logger: w.cfg.Logger, Heard: w.heard, Fenced: w.over, Left: w.left, Bundled: func(s trust.SignedBundle) { w.bundles.Add(s) }}
	if w.control.elsewhere() {
		cfg.Servers, cfg.Judges = w.cfg.GCS, w.serves()
		return cfg
	}
	if !w.serves() {
		cfg.Live, cfg.Epoch, cfg.Dialer = w.member.Live(), epoch, w.cfg.Wires.Dialer
		for _, s := range w.member.Servers() {
			cfg.Servers = append(cfg.Servers, s.GCS)
		}
		return cfg
	}
	cfg.Dir = w.control.tables()
	cfg.Listen = &gcsshell.ListenConfig{
		Live: w.member.Live, Cluster: w.member.Cluster(), Identity: w.identity, Clients: w.at.gcs, Routes: w.at.routes,
		AdvertiseClients: w.at.shown(portGCS), AdvertiseRoutes: w.at.shown(portRoutes),
	}
	for _, s := range w.member.Servers() {
		if s.Routes != w.at.shown(portRoutes) {
			cfg.Listen.Others = append(cfg.Listen.Others, s.Routes)
		}
	}
	return cfg
}

// agreeOnTables refuses a node that looks for the tables elsewhere than its cluster has them.
func (w *wired) agreeOnTables() error {
	for _, s := range w.member.Servers() {
		switch {
		case s.GCS == "" && !w.control.elsewhere():
			return errs.New(errs.CodeInvalid, "the cluster has its tables in NATS servers of their own: say where with --gcs, as on its other nodes")
		case s.GCS != "" && w.control.elsewhere():
			return errs.New(errs.CodeInvalid, "the cluster's control-plane servers carry its tables, %s for one: start the node without --gcs", s.GCS)
		}
	}
	return nil
}

// serves tells whether the node is a control-plane server.
func (w *wired) serves() bool { return w.on() && w.member.Role() == trust.ControlPlane }

// authorityOf is the cluster's authority, as a control-plane server serves it.
func (w *wired) authorityOf() (*authority.Authority, error) {
	if w.authority != nil {
		return w.authority, nil
	}
	secret, err := w.member.Secret()
	if err != nil {
		return nil, err
	}
	w.authority = authority.New(authority.DefaultConfig(w.control.g.Trust(), secret, w.cfg.Wires.Wall, w.clock.Now))
	return w.authority, nil
}

// prepare gives the other parts the cluster, once the node has a home.
func (w *wired) prepare() (err error) {
	if !w.on() {
		return nil
	}
	if w.port, err = nodeport.New(w.listener, w.member.Live(), w.cfg.Wires.Dialer, w.cfg.Logger); err != nil {
		return err
	}
	c := &Cluster{Name: w.member.Live().Name().Cluster, Address: w.address, Others: w.others, Verify: w.verify}
	messages, err := w.port.Messages()
	if err != nil {
		return err
	}
	c.Transport = dials{messages, w}
	if c.Objects, err = w.port.Objects(w.address); err != nil {
		return err
	}
	w.cfg.Cluster = c
	return nil
}

// verify holds the certificate of the other end to the node that it says it is.
func (w *wired) verify(cs tls.ConnectionState, home ids.Home) error {
	is, err := credentials.HomeOf(cs)
	if err == nil && is != home {
		err = trust.Refuse(trust.ErrNode, "the certificate is of node %v, and the other side says that it is node %v", is, home)
	}
	return err
}

// serve lets other nodes in: the node is ready for them.
func (w *wired) serve() error {
	if !w.on() {
		return nil
	}
	if err := w.startGossip(); err != nil {
		return err
	}
	if w.serves() {
		if err := w.serveJoins(); err != nil {
			return err
		}
	}
	w.work.Go(func() {
		if err := w.port.Serve(); err != nil {
			w.cfg.Logger.Error("the port for other nodes is closed", "address", w.at.listen, "err", err)
		}
	})
	w.work.Go((&trusting{wired: w}).run)
	w.cfg.Logger.Info("the node is of a cluster", "cluster", w.member.Live().Name().Cluster, "role", w.member.Role(), "home", w.numbers.Row().Home,
		"address", w.at.shown(portNodes))
	return nil
}

// leave tells the other nodes that this one ends in order.
func (w *wired) leave(ctx context.Context) error {
	g := w.gossip.Load()
	if g == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, goodbyeTime)
	defer cancel()
	if err := (*g).Leave(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) { // which its own timer may say first
		return err
	}
	return nil
}

// goodbyeTime bounds how long the end of a node waits for the others to take note of it.
const goodbyeTime = 2 * time.Second

// close closes the port.
func (w *wired) close() error {
	switch {
	case w.port != nil:
		return w.port.Close()
	case w.listener != nil:
		return w.listener.Close()
	}
	return nil
}
