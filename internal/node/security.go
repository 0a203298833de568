package node

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"mobula/internal/ids"
	"mobula/internal/node/observe"
	"mobula/internal/sockets"
	"mobula/internal/state"
)

// security says how each node is protected.
func (r *requests) security(ctx context.Context, in state.SecurityRequest) (out state.SecurityReport, err error) {
	to, err := r.scope(ctx, in.Node)
	if err != nil {
		return out, err
	}
	parts, missing, err := everywhere(ctx, r, to, answerWithin, state.MethodSecurityCheck, func(ids.Home) (empty, error) { return empty{}, nil }, r.securityHere)
	if err != nil {
		return out, err
	}
	for _, p := range parts {
		out.Nodes = append(out.Nodes, p.out)
	}
	slices.SortStableFunc(out.Nodes, func(a, b state.NodeSecurity) int {
		return cmp.Or(cmp.Compare(len(a.Home), len(b.Home)), cmp.Compare(a.Home, b.Home))
	})
	out.Unreachable = missing
	return out, nil
}

// securityHere says how this node is protected: what listens, and by what it proves who it is. The process' sockets are compared with what the node knows to
// listen on, if the process is its own.
func (r *requests) securityHere(ctx context.Context, _ empty) (out state.NodeSecurity, err error) {
	out = state.NodeSecurity{Node: r.cfg.Name, Home: r.numbers.Row().Home.String(), Certificates: []state.Certificate{}, Keys: []state.SecretKey{}, Weak: []state.Weakness{}}
	weak := func(what, mend string) { out.Weak = append(out.Weak, state.Weakness{What: what, Mend: mend}) }
	out.Listeners = append(r.ownListeners(weak), r.wired.listeners()...)
	if r.stop.Load() != nil {
		all, err := sockets.Listening()
		if err != nil {
			return out, err
		}
		out.Listeners = append(out.Listeners, unexpected(all, out.Listeners)...)
	}
	for _, l := range out.Listeners {
		if l.Away && (l.Open || l.Unexpected) {
			out.Weak = append(out.Weak, state.Weakness{
				What: l.Network + " " + l.Address + " (" + l.For + ") is open to other machines: " + l.Protection, Mend: "find out what opened it, and close it", Exposed: true,
			})
		}
	}
	r.filesSecurity(weak)
	for _, s := range r.cfg.GCS {
		if u, err := url.Parse(s); err == nil && u.Scheme != "tls" && !isLoopback(u.Hostname()) {
			out.Weak = append(out.Weak, state.Weakness{
				What: "the control plane at " + u.Redacted() + " is used in clear text", Mend: "give its servers TLS, and say tls://HOST:PORT in the setting gcs", Exposed: true,
			})
		}
	}
	return out, r.wired.security(ctx, &out, weak)
}

// ownListeners are what every node has: its socket, and its metrics if it was told to.
func (r *requests) ownListeners(weak func(what, mend string)) []state.Listening {
	at := r.Address()
	out := []state.Listening{{Network: "unix", Address: at, For: "programs, workers and this command", Protection: "this user's alone, by the modes of file and directory"}}
	for _, path := range []string{at, filepath.Dir(at)} {
		if mode, loose := othersMay(path); loose {
			out[0].Open = true
			weak("other users of the machine may reach the node's socket: "+path+" has the mode "+mode.String(), "chmod go= "+path)
		}
	}
	if at := r.obs.MetricsURL(); at != "" {
		host := at
		if u, err := url.Parse(at); err == nil {
			host = u.Host
		}
		out = append(out, state.Listening{Network: "tcp", Address: host, For: "metrics", Protection: "loopback only, with the token of the file " + observe.TokenName})
	}
	return out
}

// filesSecurity looks at the modes of the node's directory and of what only the node may read.
func (r *requests) filesSecurity(weak func(what, mend string)) {
	paths := []string{r.dir}
	for _, name := range []string{"secret", "identity", "home", "credentials.pem", "credentials.key", "cluster.secret", "cluster.json", "authority.json", "bundle.json", observe.TokenName} {
		paths = append(paths, filepath.Join(r.dir, name))
	}
	for _, path := range paths {
		if mode, loose := othersMay(path); loose {
			weak("others may read or change "+path+", which has the mode "+mode.String(), "chmod go= "+path)
		}
	}
}

// othersMay tells whether the mode of a file gives other users any right.
func othersMay(path string) (mode os.FileMode, loose bool) {
	st, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	mode = st.Mode().Perm()
	return mode, mode&0o077 != 0
}

// unexpected are the sockets that the process listens on and the node does not know.
func unexpected(all []sockets.Socket, known []state.Listening) (out []state.Listening) {
	for _, s := range all {
		l := state.Listening{Network: s.Network, Address: s.Path, For: "not known", Protection: "not known", Unexpected: true}
		if s.Network != "unix" {
			l.Address = s.At.String()
			l.Away = !s.At.Addr().IsLoopback()
		}
		if !slices.ContainsFunc(known, func(k state.Listening) bool { return is(s, k) }) {
			out = append(out, l)
		}
	}
	return out
}

// is tells whether a socket is one that the node knows. A Unix socket's path may be a short form of the real one.
func is(s sockets.Socket, k state.Listening) bool {
	switch {
	case s.Network != k.Network:
		return false
	case s.Network == "unix":
		return filepath.Base(s.Path) == filepath.Base(k.Address)
	}
	at, err := netip.ParseAddrPort(k.Address)
	return err == nil && s.At.Port() == at.Port() && (s.At == at || s.At.Addr().IsUnspecified() && at.Addr().IsUnspecified())
}

// isLoopback tells whether only this machine reaches a host.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
