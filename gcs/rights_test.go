package gcs

import (
	"errors"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/remote"
)

// Each row is something that a node of home 2 must not do, or may do, in the second life of its home.
func TestANodeChangesOnlyWhatIsItsOwn(t *testing.T) {
	row := func(home ids.Home, identity string, epoch, fenced uint64) HomeRecord {
		return HomeRecord{Row: register.Row{Home: home, Identity: identity, Epoch: epoch}, Fenced: fenced}
	}
	actor := func(home ids.Home) ActorRecord { return ActorRecord{Name: "hits", Job: ids.JobID(home)<<36 + 1} }
	node := func(home ids.Home, epoch uint64) NodeRecord { return NodeRecord{Home: home, Epoch: epoch} }
	now := row(2, "me", 2, 1)
	for _, c := range []struct {
		what    string
		call    Effect
		epoch   uint64
		present Record
		want    error
	}{
		{"read a home", Read{Bucket: Homes, Key: "3"}, 2, nil, nil},
		{"write its heartbeat", Write{Record: node(2, 2), Revision: -1}, 2, nil, nil},
		{"write the heartbeat of another home", Write{Record: node(3, 2), Revision: -1}, 2, nil, errs.ErrPermission},
		{"write the heartbeat of a later life", Write{Record: node(2, 3), Revision: -1}, 2, nil, errs.ErrPermission},
		{"say goodbye", Delete{Bucket: Nodes, Key: "2", Revision: 7}, 2, node(2, 2), nil},
		{"say goodbye for another", Delete{Bucket: Nodes, Key: "3", Revision: 7}, 2, node(3, 2), errs.ErrPermission},

		{"claim a name", Write{Record: actor(2), Revision: 0}, 2, nil, nil},
		{"claim a name for a job of another home", Write{Record: actor(3), Revision: 0}, 2, nil, errs.ErrPermission},
		{"claim a name whoever has it", Write{Record: actor(2), Revision: -1}, 2, nil, errs.ErrPermission},
		{"take a name of another home", Write{Record: actor(2), Revision: 7}, 2, actor(3), errs.ErrPermission},
		{"update its actor", Write{Record: actor(2), Revision: 7}, 2, actor(2), nil},
		{"free its name", Delete{Bucket: Actors, Key: "x", Revision: 7}, 2, actor(2), nil},
		{"free a name of another home", Delete{Bucket: Actors, Key: "x", Revision: 7}, 2, actor(3), errs.ErrPermission},
		{"free a name whoever has it", Delete{Bucket: Actors, Key: "x", Revision: -1}, 2, actor(2), errs.ErrPermission},

		{"begin its next life", Write{Record: row(2, "me", 3, 1), Revision: 7}, 0, now, nil},
		{"begin a life again", Write{Record: row(2, "me", 2, 1), Revision: 7}, 0, now, errs.ErrPermission},
		{"begin a life of another directory", Write{Record: row(2, "you", 3, 1), Revision: 7}, 0, now, errs.ErrPermission},
		{"begin a life of another home", Write{Record: row(3, "me", 3, 1), Revision: 7}, 0, now, errs.ErrPermission},
		{"begin a life whatever is there", Write{Record: row(2, "me", 3, 1), Revision: -1}, 0, now, errs.ErrPermission},
		{"take a verdict back", Write{Record: row(2, "me", 3, 0), Revision: 7}, 0, now, errs.ErrPermission},
		{"fence itself", Write{Record: row(2, "me", 3, 2), Revision: 7}, 0, now, errs.ErrPermission},
		{"remove its home", Delete{Bucket: Homes, Key: "2", Revision: 7}, 2, now, errs.ErrPermission},

		{"write the trust bundle", Write{Record: BundleRecord{}, Revision: -1}, 2, nil, errs.ErrPermission},
		{"replace the trust bundle", Write{Record: BundleRecord{}, Revision: 7}, 2, BundleRecord{}, errs.ErrPermission},
		{"remove the trust bundle", Delete{Bucket: Bundles, Key: "bundle", Revision: 7}, 2, BundleRecord{}, errs.ErrPermission},

		{"write in a life that was fenced", Write{Record: node(2, 1), Revision: -1}, 1, nil, ErrFenced},
		{"claim in a life that was fenced", Write{Record: actor(2), Revision: 0}, 1, nil, ErrFenced},
		{"free in a life that was fenced", Delete{Bucket: Actors, Key: "x", Revision: 7}, 1, actor(2), ErrFenced},
		{"write in a life that nobody began", Write{Record: node(2, 3), Revision: -1}, 3, nil, errs.ErrPermission},
		{"ask for nothing that is known", After{}, 2, nil, errs.ErrPermission},
	} {
		if err := Refuses(c.call, remote.Life{Home: 2, Epoch: c.epoch}, &now, c.present); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("to %s: %v, want %v", c.what, err, c.want)
		}
	}
	if err := Refuses(Write{Record: node(2, 1), Revision: -1}, remote.Life{Home: 2, Epoch: 1}, nil, nil); !errors.Is(err, errs.ErrPermission) {
		t.Errorf("a home without a row: %v", err)
	}
	if err := Refuses(Write{Record: row(2, "me", 3, 0), Revision: 0}, remote.Life{Home: 2}, nil, nil); err != nil {
		t.Errorf("a home whose row was lost: %v", err)
	}
	over := row(2, "me", 2, 2)
	if err := Refuses(Write{Record: node(2, 2), Revision: -1}, remote.Life{Home: 2, Epoch: 2}, &over, nil); !errors.Is(err, ErrFenced) {
		t.Errorf("the latest life, fenced: %v", err)
	}
}
