package internode

import (
	"testing"

	"mobula/internal/ids"
	"mobula/wire"
)

func TestOnlyReports(t *testing.T) {
	from := func(msgs ...wire.Msg) *FromClients {
		return &FromClients{Job: 1, Items: []ClientMsgs{{Client: 7, Msgs: msgs}}}
	}
	done, get := &wire.Done{Task: ids.RootTask(1, 2)}, &wire.Get{ID: ids.RootTask(1, 3).Put(1)}
	for _, c := range []struct {
		name string
		msgs []Msg
		want bool
	}{
		{"a report", []Msg{from(done)}, true},
		{"reports", []Msg{from(done, done)}, true},
		{"a question", []Msg{from(get)}, false},
		{"a question behind a report", []Msg{from(done, get)}, false},
		{"another message behind reports", []Msg{from(done), &JobClosed{Job: 1}}, false},
		{"another message", []Msg{&JobClosed{Job: 1}}, false},
	} {
		e := Encoder{Agreed: Version}
		payload, err := e.Append(nil, c.msgs...)
		if err != nil {
			t.Fatal(err)
		}
		if got := OnlyReports(payload); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if OnlyReports(payload[:len(payload)-1]) {
			t.Errorf("%s, cut short, passes", c.name)
		}
	}
	if OnlyReports(nil) {
		t.Error("nothing passes")
	}
}
