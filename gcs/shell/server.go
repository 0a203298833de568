package shell

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
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
}

// Server is an embedded NATS server with JetStream. It listens nowhere: its clients are
// in this process.
type Server struct{ ns *server.Server }

// StartServer starts the server and waits until it is ready.
func StartServer(cfg ServerConfig) (*Server, error) {
	if cfg.ReadyTimeout == 0 {
		cfg.ReadyTimeout = 10 * time.Second
	}
	ns, err := server.NewServer(&server.Options{
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
	})
	if err != nil {
		return nil, errs.New(errs.CodeComponentFailed, "control plane in %q: %v", cfg.Dir, err)
	}
	if cfg.Logger != nil {
		ns.SetLoggerV2(natsLog{cfg.Logger}, false, false, false)
	}
	ns.Start()
	if !ns.ReadyForConnections(cfg.ReadyTimeout) {
		ns.Shutdown()
		ns.WaitForShutdown()
		return nil, errs.New(errs.CodeComponentFailed, "control plane in %q: not ready after %v; is the directory writable, and used by no other node?", cfg.Dir, cfg.ReadyTimeout)
	}
	return &Server{ns: ns}, nil
}

// Connect gives an in-process connection, which reconnects for ever.
func (s *Server) Connect(name string) (*nats.Conn, error) {
	return nats.Connect("", nats.InProcessServer(s.ns), nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
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
}

// natsLog passes the server's log on. Its notices become debug lines: the user did not ask for a NATS server.
type natsLog struct{ l *slog.Logger }

func (n natsLog) Noticef(f string, v ...any) { n.l.Debug(fmt.Sprintf(f, v...), "component", "nats") }
func (n natsLog) Debugf(f string, v ...any)  { n.l.Debug(fmt.Sprintf(f, v...), "component", "nats") }
func (n natsLog) Tracef(f string, v ...any)  { n.l.Debug(fmt.Sprintf(f, v...), "component", "nats") }
func (n natsLog) Warnf(f string, v ...any)   { n.l.Warn(fmt.Sprintf(f, v...), "component", "nats") }
func (n natsLog) Errorf(f string, v ...any)  { n.l.Error(fmt.Sprintf(f, v...), "component", "nats") }
func (n natsLog) Fatalf(f string, v ...any)  { n.l.Error(fmt.Sprintf(f, v...), "component", "nats") }
