package shell

import (
	"errors"
	"log/slog"
	"os"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/wire"
)

// Whoever waits for the answer to a dropped event is told that there will be none.
func TestDroppedEventIsAnswered(t *testing.T) {
	task := ids.Derive(ids.RootTask(3, 1), 1)
	for _, c := range []struct {
		ev     objectstore.Event
		client ids.ClientID // who is sent away
		job    ids.JobID    // whose owner is answered
	}{
		{objectstore.FromClient{Client: 5, Msg: &wire.Create{}}, 5, 0},
		{objectstore.ClientJoined{Client: 6}, 6, 0},
		{objectstore.PinForGet{Client: 7, Job: 3}, 7, 0},
		{objectstore.PinArgs{Job: 3, Task: task, Attempt: 2, Ask: 9}, 0, 3},
		{objectstore.Free{}, 0, 0}, // the owner frees what the inventory has and it does not know
	} {
		var client ids.ClientID
		var job ids.JobID
		s := &Store{log: slog.New(slog.DiscardHandler), o: Options{
			ToClient: func(id ids.ClientID, m wire.Msg, _ *os.File) {
				client = id
				if bye, ok := m.(*wire.Bye); !ok || !errors.Is(bye.Err, errs.ErrComponentFailed) {
					t.Errorf("%T: the client is sent %+v", c.ev, m)
				}
			},
			ToOwner: func(id ids.JobID, m objectstore.OwnerMsg) {
				job = id
				if r, ok := m.(objectstore.ArgsRefused); !ok || r.Task != task || r.Attempt != 2 || r.Ask != 9 || !errors.Is(r.Err, errs.ErrComponentFailed) {
					t.Errorf("%T: the owner is sent %+v", c.ev, m)
				}
			},
		}}
		s.poisoned(c.ev, errors.New("it panicked"))
		if client != c.client || job != c.job {
			t.Errorf("%T: told client %v and the owner of job %v, want %v and %v", c.ev, client, job, c.client, c.job)
		}
	}
}
