package api

import (
	"context"
	"errors"
	"testing"

	"mobula"
	"mobula/mobulatest"
)

// boss is an actor that makes a worker for itself, which escalates.
type boss struct{ hand mobula.ActorRef[notes] }

func newBoss(ctx context.Context, path string, own bool) (*boss, error) {
	opts := []mobula.ActorOption{mobula.Escalate()}
	if own {
		opts = append(opts, mobula.Isolated())
	}
	a, err := noters.Spawn(ctx, mobula.V(path), opts...)
	if err != nil {
		return nil, err
	}
	return &boss{a}, a.Ready(ctx)
}

func (b *boss) Hand(context.Context) (mobula.ActorRef[notes], error) { return b.hand, nil }

var (
	bosses   = mobula.RegisterActor2("e2e/boss", newBoss)
	bossHand = mobula.RegisterMethod0(bosses, "Hand", (*boss).Hand)
)

// A child that crashes restarts its parent, which has a new child then; beyond the parent's restarts that is dead too. Whether they
// share a process changes nothing.
func TestAChildThatCrashesFailsItsParent(t *testing.T) {
	for name, own := range map[string]bool{"one process": false, "two processes": true} {
		t.Run(name, func(t *testing.T) {
			ctx := mobulatest.Context(t, mobula.WithCPUs(4), mobula.WithProcesses())
			b, err := bosses.Spawn(ctx, mobula.V(t.TempDir()+"/n"), mobula.V(own), mobula.MaxRestarts(1))
			if err != nil {
				t.Fatal(err)
			}
			defer b.Release()
			alive := 0
			for ev, err := range mobula.Watch(ctx, b) {
				if err != nil {
					t.Fatal(err)
				}
				switch ev.Phase {
				case mobula.ActorAlive:
					if ev.Restarts != alive {
						t.Errorf("it is alive after %d restarts, want %d", ev.Restarts, alive)
					}
					alive++
					hand, err := bossHand.Go(ctx, b).Get(ctx)
					if err != nil {
						t.Fatal(err)
					}
					noteCrash.Go(ctx, hand)
					hand.Release()
				case mobula.ActorRestarting:
					if errors.Is(ev.Err, mobula.ErrActorDied) {
						t.Errorf("it restarts because of %v", ev.Err)
					}
				case mobula.ActorDead:
					if alive != 2 || !errors.Is(ev.Err, mobula.ErrActorDied) {
						t.Errorf("it was alive %d times, and died of %v", alive, ev.Err)
					}
				}
			}
		})
	}
}
