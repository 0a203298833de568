package shell

import (
	"log/slog"
	"slices"
	"testing"

	"mobula/actors"
	"mobula/objectstore/segment"
	"mobula/remote/transfer"
)

// A core that panics at a fetch that it was built with is followed by one that has it too: only what was in the mailbox comes again.
func TestACoreThatPanicsAsItBegins(t *testing.T) {
	x := &Transfer{o: Options{Config: transfer.DefaultConfig(1)}, log: slog.New(slog.DiscardHandler)}
	var all []transfer.Event
	for range 3 {
		all = append(all, x.memory.fetch(transfer.Fetch{}, &segment.Room{}, func(error) {}).event)
	}
	step := func(restart, inBuild, inHand int) []transfer.Event {
		c, first, err := x.build(actors.Start{Restart: restart, Reason: actors.InjectedPanic{}})
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range append(first[:inBuild:inBuild], all[:inHand]...) {
			c.Step(1, ev)
		}
		return first
	}
	if first := step(1, 3, 1); len(first) != 3 {
		t.Errorf("built with %+v", first)
	}
	for restart := 2; restart < 4; restart++ { // the first fetch is in hand, and comes again
		first := step(restart, 1, 0)
		var ids []transfer.FetchID
		for _, ev := range first {
			ids = append(ids, ev.(transfer.Fetch).ID)
		}
		if !slices.Equal(ids, []transfer.FetchID{2, 3}) {
			t.Errorf("core %d begins with the fetches %v", restart, ids)
		}
	}
}
