package shell

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"mobula/internal/errs"
)

// ServerConfig configures the embedded NATS server.
type ServerConfig struct {
	Dir          string        // of its files
	Name         string        // of the node
	Logger       *slog.Logger  // nil: silent
	ReadyTimeout time.Duration // 0: 10 s
	Listen       *ListenConfig // nil: it listens nowhere, its clients are in this process
}

// Server is an embedded NATS server with JetStream.
type Server struct {
	ns   *server.Server
	door *door        // nil: it does not listen
	away atomic.Int64 // how long another server may be away before another one takes its place, as a time.Duration
}

// StartServer starts the server and waits until it is ready.
func StartServer(cfg ServerConfig) (*Server, error) {
	if cfg.ReadyTimeout == 0 {
		cfg.ReadyTimeout = 10 * time.Second
	}
	opts := &server.Options{
		ServerName: cfg.Name,
		DontListen: true,
		NoSigs:     true,
		NoLog:      cfg.Logger == nil,
		JetStream:  true,
		StoreDir:   cfg.Dir,
		SyncAlways: true,
		// Control-plane tables are small; these bounds only stop a runaway.
		JetStreamMaxMemory: 64 << 20,
		JetStreamMaxStore:  4 << 30,
		MaxPayload:         8 << 20,
	}
	s := &Server{}
	s.away.Store(int64(forgetAfter))
	if cfg.Listen != nil {
		var err error
		if s.door, err = newDoor(cfg.Listen.Live, s.systemAccount); err != nil {
			return nil, errs.New(errs.CodeComponentFailed, "control plane: %v", err)
		}
		if err := cfg.Listen.options(opts, s.door); err != nil {
			return nil, errs.New(errs.CodeInvalid, "control plane: %v", err)
		}
	}
	if cfg.Listen != nil {
		if err := setAside(cfg.Dir); err != nil {
			return nil, errs.New(errs.CodeComponentFailed, "control plane in %q: %v", cfg.Dir, err)
		}
	}
	ns, err := server.NewServer(opts)
	if err == nil && cfg.Listen != nil {
		err = seedPeers(cfg.Dir, ns.NodeName(), len(cfg.Listen.Others) == 0)
	}
	if err != nil {
		return nil, errs.New(errs.CodeComponentFailed, "control plane in %q: %v", cfg.Dir, err)
	}
	s.ns = ns
	if cfg.Logger != nil {
		ns.SetLoggerV2(natsLog{cfg.Logger}, false, false, false)
	}
	ns.Start()
	if !ns.ReadyForConnections(cfg.ReadyTimeout) {
		s.Close()
		return nil, errs.New(errs.CodeComponentFailed, "control plane in %q: not ready after %v; is the directory writable, and used by no other node?", cfg.Dir, cfg.ReadyTimeout)
	}
	if cfg.Listen != nil {
		if err := s.lead(cfg.Listen, cfg.ReadyTimeout); err != nil {
			s.Close()
			return nil, errs.New(errs.CodeComponentFailed, "control plane in %q: %v", cfg.Dir, err)
		}
	}
	return s, nil
}

// Connect gives an in-process connection, which reconnects for ever.
func (s *Server) Connect(name string) (*nats.Conn, error) {
	opts := []nats.Option{nats.InProcessServer(s.ns), nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(50 * time.Millisecond)}
	if s.door != nil {
		opts = append(opts, nats.UserInfo("self", s.door.password), nats.IgnoreDiscoveredServers())
	}
	return nats.Connect("", opts...)
}

// systemAccount is the account in which servers are asked about the set.
func (s *Server) systemAccount() *server.Account { return s.ns.SystemAccount() }

// connectSystem gives an in-process connection to the system account.
func (s *Server) connectSystem() (*nats.Conn, error) {
	return nats.Connect("", nats.InProcessServer(s.ns), nats.UserInfo(systemUser, s.door.password), nats.IgnoreDiscoveredServers())
}

// dial connects to servers elsewhere. Once it was connected it tries to reconnect for ever.
func dial(servers []string, name string) (*nats.Conn, error) {
	nc, err := nats.Connect(strings.Join(servers, ","), nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(250*time.Millisecond), nats.Timeout(5*time.Second))
	if err != nil {
		return nil, errs.New(errs.CodeComponentFailed, "no NATS server answers at %s (setting gcs): %v", Redacted(servers), err)
	}
	return nc, nil
}

// Redacted gives the URLs of servers without passwords, to be shown.
func Redacted(servers []string) string {
	out := make([]string, len(servers))
	for i, s := range servers {
		if u, err := url.Parse(s); err == nil {
			s = u.Redacted()
		}
		out[i] = s
	}
	return strings.Join(out, ",")
}

// replicas is how many copies of each table a set of servers keeps: the largest odd number up to 5 that does not exceed the number of servers.
func replicas(servers int) int {
	switch {
	case servers >= 5:
		return 5
	case servers >= 3:
		return 3
	}
	return 1
}

// Close stops the server and waits for it.
func (s *Server) Close() {
	s.ns.Shutdown()
	s.ns.WaitForShutdown()
	if s.door != nil {
		s.door.close()
	}
}

// onPurpose are warnings of the server about what it is told to be: TLS comes first on every connection, and the certificates of routes are checked by the cluster's
// own rules (credentials.Live), which it does not see. To wait for other servers is no fault either.
var onPurpose = []string{"Clients that are not using \"TLS Handshake First\"", "TLS certificate chain and hostname of solicited routes", "Waiting for routing to be established"}

// natsLog passes the server's log on. Its notices become debug lines: the user did not ask for a NATS server.
type natsLog struct{ l *slog.Logger }

func (n natsLog) Noticef(f string, v ...any) { n.l.Debug(fmt.Sprintf(f, v...), "component", "nats") }
func (n natsLog) Debugf(f string, v ...any)  { n.l.Debug(fmt.Sprintf(f, v...), "component", "nats") }
func (n natsLog) Tracef(f string, v ...any)  { n.l.Debug(fmt.Sprintf(f, v...), "component", "nats") }

func (n natsLog) Warnf(f string, v ...any) {
	level, text := slog.LevelWarn, fmt.Sprintf(f, v...)
	if slices.ContainsFunc(onPurpose, func(begin string) bool { return strings.HasPrefix(text, begin) }) {
		level = slog.LevelDebug
	}
	n.l.Log(context.Background(), level, text, "component", "nats")
}
func (n natsLog) Errorf(f string, v ...any) { n.l.Error(fmt.Sprintf(f, v...), "component", "nats") }
func (n natsLog) Fatalf(f string, v ...any) { n.l.Error(fmt.Sprintf(f, v...), "component", "nats") }
