package shell

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Times of the start of a server of a cluster: how often it looks, and how long the others have to make a route.
const (
	leadPoll  = 5 * time.Millisecond
	routeTime = 3 * time.Second
)

// lead waits until a server's set has a leader. NATS' raft groups do not begin before there is a route to another server. So if
// there is none, a second server is in this process for that moment, which carries no tables.
func (s *Server) lead(cfg *ListenConfig, within time.Duration) error {
	var second *server.Server
	defer func() {
		if second != nil {
			second.Shutdown()
			second.WaitForShutdown()
		}
	}()
	began := time.Now()
	for ; s.leader() == ""; time.Sleep(leadPoll) {
		waited := time.Since(began)
		if waited > within {
			if len(cfg.Others) > 0 {
				return nil // most of the others are away: who asks for the tables waits for them
			}
			return fmt.Errorf("it has no leader after %v", within)
		}
		if second == nil && s.ns.NumRoutes() == 0 && (len(cfg.Others) == 0 || waited > routeTime) {
			var err error
			if second, err = s.second(cfg.Cluster); err != nil {
				return err
			}
		}
		s.electAlone()
	}
	return nil
}

// second starts the second server. It listens on the loopback interface, for this process only: without a listener for clients it would
// make no route.
func (s *Server) second(cluster string) (*server.Server, error) {
	second, err := server.NewServer(&server.Options{
		ServerName: s.ns.Name() + "-second", NoSigs: true, NoLog: true,
		Host: "127.0.0.1", Port: -1, TLSConfig: s.door.ownTLS(), TLSHandshakeFirst: true, Authorization: rand.Text(),
		Cluster: server.ClusterOpts{Name: cluster, Host: "127.0.0.1", Port: -1, NoAdvertise: true, TLSConfig: s.door.ownTLS(), TLSTimeout: greetingTime.Seconds()},
		Routes:  []*url.URL{{Scheme: "nats-route", Host: s.ns.ClusterAddr().String()}},
	})
	if err != nil {
		return nil, err
	}
	second.Start()
	return second, nil
}

// leader is the name of the server that leads the set, as far as this one knows; empty: none.
func (s *Server) leader() string {
	info, err := s.ns.Jsz(nil)
	if err != nil || info.Meta == nil {
		return ""
	}
	return info.Meta.Leader
}
