package node

import (
	"context"
	"maps"
	"slices"

	"mobula/gcs"
	gcsshell "mobula/gcs/shell"
	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/trust"
	"mobula/internal/trust/join"
)

// enrolment is what a node that joins must know.
func (w *wired) enrolment(ctx context.Context) (e join.Enrolment, err error) {
	if e.GossipKeys, err = w.authority.GossipKeys(ctx); err != nil {
		return e, err
	}
	e.Servers = append(e.Servers, serverAt(w.at.all()))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range slices.Sorted(maps.Keys(w.servers)) {
		if _, there := w.beats[h]; there && h != w.numbers.Row().Home {
			e.Servers = append(e.Servers, w.servers[h])
		}
	}
	return e, nil
}

// serverAt is where a control-plane server listens, as its row in the table of nodes says.
func serverAt(at map[string]string) join.Addresses {
	return join.Addresses{Address: at[gcs.AtNodes], GCS: at[gcs.AtTables], Routes: at[gcs.AtRoutes], Gossip: at[gcs.AtGossip]}
}

// homes is the register of homes as a server of joins asks it.
type homes struct{ w *wired }

func (h homes) Begin(ctx context.Context, node string, c register.Claim) (register.Row, error) {
	return gcsshell.Register{GCS: h.w.control.g, Node: node}.Begin(ctx, c)
}

func (h homes) Row(ctx context.Context, home ids.Home) (register.Row, error) {
	records, err := h.w.control.askWait(ctx, gcs.Lookup{Bucket: gcs.Homes, Key: home.String()})
	if err != nil {
		return register.Row{}, err
	}
	if len(records) == 0 {
		return register.Row{}, errs.New(errs.CodeNotFound, "the cluster has no home %v", home)
	}
	return records[0].(gcs.HomeRecord).Row, nil
}

// serveJoins answers nodes that join or renew.
func (w *wired) serveJoins() error {
	a, err := w.authorityOf()
	if err != nil {
		return err
	}
	secret, err := w.member.Secret()
	if err != nil {
		return err
	}
	server := &join.Server{
		Authority: a, Secret: secret, Live: w.member.Live(), Homes: homes{w},
		Enrol: func(ctx context.Context, _ trust.Name) (join.Enrolment, error) { return w.enrolment(ctx) },
	}
	acceptor, err := w.port.Joins()
	if err != nil {
		return err
	}
	w.work.Go(func() {
		for {
			c, err := acceptor.Accept()
			if err != nil {
				return // the port is closed
			}
			w.work.Go(func() {
				if err := server.Serve(w.life, c); err != nil {
					w.limited.warn("a node that asked to join was refused, or went away", "from", c.RemoteAddr().String(), "err", err)
				}
			})
		}
	})
	return nil
}
