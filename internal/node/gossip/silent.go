package gossip

import (
	"context"
	"time"

	"mobula/actors"
	"mobula/remote/membership"
)

// silent is a membership that does not gossip: it believes the control plane's table and the connections.
type silent struct {
	cfg   Config
	ref   *actors.Ref[membership.Event]
	unarm func() // ends the present core's timer; on the actor's goroutine
}

func startSilent(parent actors.Parent, cfg Config) (*silent, error) {
	s := &silent{cfg: cfg, unarm: func() {}}
	var err error
	s.ref, err = actors.Spawn(parent, actors.Spec[membership.Event, membership.Effect]{
		Kind: "membership", Name: "membership",
		New: func(actors.Start) (actors.Core[membership.Event, membership.Effect], []membership.Event, error) {
			return membership.NewCore(cfg.Core), cfg.Facts(), nil
		},
		Do:     s.do,
		Policy: actors.Policy{MaxRestarts: 10, Window: time.Minute},
	})
	return s, err
}

func (s *silent) do(self *actors.Ref[membership.Event], e membership.Effect) {
	switch e := e.(type) {
	case membership.After:
		s.unarm()
		s.unarm = self.After(e.Delay, membership.Timer{})
	case membership.Accuse:
		s.cfg.Accuse(e)
	case membership.Notice:
		s.cfg.Follow(e)
	}
}

// Tell implements Gossip.
func (s *silent) Tell(ev membership.Event) error { return s.ref.Post(ev) }

// Join implements Gossip: there is nobody to reach.
func (s *silent) Join(context.Context, []string) (int, error) { return 0, nil }

// SetKeys implements Gossip: nothing is encrypted.
func (s *silent) SetKeys([][]byte) error { return nil }

// Leave implements Gossip: the row in the table says it.
func (s *silent) Leave(context.Context) error { return nil }
