package internode

import (
	"errors"
	"fmt"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner"
	"mobula/raylet/sched"
	"mobula/wire"
)

// The nodes of these tests: the one that checks, who sends, and one that has nothing to do with it.
const (
	here  ids.Home = 1
	there ids.Home = 2
	third ids.Home = 3
)

// A node speaks for its own jobs, clients and leases; what it says of others' is refused, also where it is inside a message that is its own to send.
func TestWhoMaySendAMessage(t *testing.T) {
	mine, theirs, others := ids.JobID(here.ID(7)), ids.JobID(there.ID(7)), ids.JobID(third.ID(7))
	second := ids.JobID(there.ID(8)) // another job of who sends
	task := func(j ids.JobID) ids.TaskID { return ids.RootTask(j, 1) }
	object := func(j ids.JobID) ids.ObjectID { return task(j).Put(1) }
	client := func(h ids.Home) ids.ClientID { return ids.ClientID(h.ID(5)) }
	lease := func(h ids.Home) ids.LeaseID { return ids.LeaseID(h.ID(5)) }
	key := func(j ids.JobID) sched.ClassKey { return sched.ClassKey{Job: j, Class: 1} }
	toSched := func(ev sched.Event) Msg { return &ToSched{Job: theirs, Msg: ev} }
	fromSched := func(m sched.OwnerMsg) Msg { return &FromSched{Job: mine, Msg: m} }
	toStore := func(ev objectstore.Event) Msg { return &ToStore{Job: theirs, Msg: ev} }
	fromStore := func(m objectstore.OwnerMsg) Msg { return &FromStore{Job: mine, Msg: m} }
	words := func(msgs ...wire.Msg) Msg { return &PeerWords{From: theirs, To: mine, Msgs: msgs} }
	toPeer := func(m owner.PeerMsg) Msg { return &ToPeer{From: theirs, To: mine, Msg: m} }
	seen := map[string]bool{}
	name := func(m Msg) string {
		var inside any
		switch m := m.(type) {
		case *ToSched:
			inside = m.Msg
		case *FromSched:
			inside = m.Msg
		case *ToStore:
			inside = m.Msg
		case *FromStore:
			inside = m.Msg
		case *ToPeer:
			inside = m.Msg
		default:
			return m.Kind().String()
		}
		return fmt.Sprintf("%v %T", m.Kind(), inside)
	}
	for _, c := range []struct {
		may []Msg
		not []Msg
	}{
		{[]Msg{&OpenJob{Job: theirs}}, []Msg{&OpenJob{Job: mine}, &OpenJob{Job: others}}},
		{[]Msg{&CloseJob{Job: theirs}}, []Msg{&CloseJob{Job: mine}, &CloseJob{Job: others}}},
		{[]Msg{&ToClients{Job: theirs}}, []Msg{&ToClients{Job: mine}, &ToClients{Job: others}}},
		{[]Msg{&JobClosed{Job: mine}}, []Msg{&JobClosed{Job: theirs}, &JobClosed{Job: others}}},
		{[]Msg{&ClientJoined{Job: mine, Client: client(there), Role: wire.RoleWorker}}, []Msg{
			&ClientJoined{Job: others, Client: client(there), Role: wire.RoleWorker}, &ClientJoined{Job: mine, Client: client(third), Role: wire.RoleWorker},
			&ClientJoined{Job: mine, Client: client(here), Role: wire.RoleWorker}, &ClientJoined{Job: mine, Client: client(there), Role: wire.RoleDriver},
			&ClientJoined{Job: mine, Client: client(there), Role: wire.RoleTool},
		}},
		{[]Msg{&ClientGone{Job: mine, Client: client(there)}}, []Msg{&ClientGone{Job: others, Client: client(there)}, &ClientGone{Job: mine, Client: client(here)}}},
		{[]Msg{&FromClients{Job: mine, Items: []ClientMsgs{{Client: client(there)}}}}, []Msg{
			&FromClients{Job: others}, &FromClients{Job: mine, Items: []ClientMsgs{{Client: client(there)}, {Client: client(here)}}},
		}},
		{[]Msg{&WorkerOutput{Job: mine}}, []Msg{&WorkerOutput{Job: theirs}, &WorkerOutput{Job: others}}},
		{[]Msg{&Report{}}, nil}, {[]Msg{&Ask{}}, nil}, {[]Msg{&Answer{}}, nil}, {[]Msg{&AskTime{}}, nil}, {[]Msg{&TellTime{}}, nil},

		{[]Msg{&FindBlob{Job: mine, What: BlobExecutable}, &FindBlob{Job: theirs, What: BlobFunction}}, []Msg{&FindBlob{Job: theirs, What: BlobExecutable}, &FindBlob{Job: others, What: BlobFunction}}},
		{[]Msg{&PullBlob{Job: mine, What: BlobModules}, &PullBlob{Job: theirs, What: BlobFunction}}, []Msg{&PullBlob{Job: theirs, What: BlobModules}, &PullBlob{Job: others, What: BlobFunction}}},
		{[]Msg{&BlobFound{Job: theirs, What: BlobExecutable}, &BlobFound{Job: mine, What: BlobFunction}}, []Msg{&BlobFound{Job: mine, What: BlobExecutable}, &BlobFound{Job: others, What: BlobFunction}}},
		{[]Msg{&BlobChunk{Job: theirs, What: BlobModules}, &BlobChunk{Job: mine, What: BlobFunction}}, []Msg{&BlobChunk{Job: mine, What: BlobModules}, &BlobChunk{Job: others, What: BlobFunction}}},
		{[]Msg{&OfferBlob{Job: mine}}, []Msg{&OfferBlob{Job: theirs}, &OfferBlob{Job: others}}},
		{[]Msg{&BlobTaken{Job: theirs}}, []Msg{&BlobTaken{Job: mine}, &BlobTaken{Job: others}}},

		{[]Msg{toSched(sched.Want{Key: key(theirs)})}, []Msg{&ToSched{Job: mine, Msg: sched.Want{Key: key(mine)}}, toSched(sched.Want{Key: key(second)}), toSched(sched.Want{Key: key(mine)})}},
		{[]Msg{toSched(sched.DropJob{Job: theirs})}, []Msg{toSched(sched.DropJob{Job: mine}), toSched(sched.DropJob{Job: second})}},
		{[]Msg{toSched(sched.OwnerRestarted{Job: theirs})}, []Msg{toSched(sched.OwnerRestarted{Job: mine})}},
		{[]Msg{toSched(sched.Holdings{Job: theirs, Wants: []sched.Want{{Key: key(theirs)}}, Held: []sched.Held{{Key: key(theirs), Lease: lease(here), Worker: client(here)}}})}, []Msg{
			toSched(sched.Holdings{Job: mine}), toSched(sched.Holdings{Job: theirs, Wants: []sched.Want{{Key: key(mine)}}}),
			toSched(sched.Holdings{Job: theirs, Held: []sched.Held{{Key: key(mine), Lease: lease(here), Worker: client(here)}}}),
			toSched(sched.Holdings{Job: theirs, Held: []sched.Held{{Key: key(theirs), Lease: lease(there), Worker: client(here)}}}),
			toSched(sched.Holdings{Job: theirs, Held: []sched.Held{{Key: key(theirs), Lease: lease(here), Worker: client(third)}}}),
		}},
		{[]Msg{toSched(sched.Return{Lease: lease(here)})}, []Msg{toSched(sched.Return{Lease: lease(third)})}},
		{[]Msg{toSched(sched.BlockCPU{Lease: lease(here)})}, []Msg{toSched(sched.BlockCPU{Lease: lease(third)})}},
		{[]Msg{toSched(sched.UnblockCPU{Lease: lease(here)})}, []Msg{toSched(sched.UnblockCPU{Lease: lease(third)})}},
		{[]Msg{toSched(sched.ActorUp{Lease: lease(here)})}, []Msg{toSched(sched.ActorUp{Lease: lease(third)})}},
		{[]Msg{toSched(sched.DrainWorker{Worker: client(here)})}, []Msg{toSched(sched.DrainWorker{Worker: client(there)})}},
		{[]Msg{toSched(sched.KillWorker{Worker: client(here)})}, []Msg{toSched(sched.KillWorker{Worker: client(there)})}},

		{[]Msg{fromSched(sched.Granted{Key: key(mine), Lease: lease(there), Worker: client(there)})}, []Msg{
			&FromSched{Job: theirs, Msg: sched.Granted{Key: key(theirs), Lease: lease(there), Worker: client(there)}},
			fromSched(sched.Granted{Key: key(others), Lease: lease(there), Worker: client(there)}),
			fromSched(sched.Granted{Key: key(mine), Lease: lease(third), Worker: client(there)}), fromSched(sched.Granted{Key: key(mine), Lease: lease(there), Worker: client(here)}),
		}},
		{[]Msg{fromSched(sched.Reclaim{Lease: lease(there)})}, []Msg{fromSched(sched.Reclaim{Lease: lease(here)})}},
		{[]Msg{fromSched(sched.Revoked{Lease: lease(there)})}, []Msg{fromSched(sched.Revoked{Lease: lease(here)}), fromSched(sched.Revoked{Lease: lease(there), Worker: client(third)})}},
		{[]Msg{fromSched(sched.Resumed{Lease: lease(there)})}, []Msg{fromSched(sched.Resumed{Lease: lease(here)})}},
		{[]Msg{fromSched(sched.Infeasible{Key: key(mine)})}, []Msg{fromSched(sched.Infeasible{Key: key(others)})}},
		{[]Msg{fromSched(sched.Feasible{Key: key(mine)})}, []Msg{fromSched(sched.Feasible{Key: key(others)})}},
		{[]Msg{fromSched(sched.Resync{})}, []Msg{&FromSched{Job: others, Msg: sched.Resync{}}}},

		{[]Msg{toStore(objectstore.SealObject{ID: object(theirs)})}, []Msg{toStore(objectstore.SealObject{ID: object(mine)}), toStore(objectstore.SealObject{ID: object(second)})}},
		{[]Msg{toStore(objectstore.DropAttempt{ID: object(theirs)})}, []Msg{toStore(objectstore.DropAttempt{ID: object(mine)})}},
		{[]Msg{toStore(objectstore.Located{ID: object(theirs)})}, []Msg{toStore(objectstore.Located{ID: object(mine)})}},
		{[]Msg{toStore(objectstore.Free{IDs: []ids.ObjectID{object(theirs)}})}, []Msg{
			&ToStore{Job: mine, Msg: objectstore.Free{}}, toStore(objectstore.Free{IDs: []ids.ObjectID{object(theirs), object(mine)}}),
		}},
		{[]Msg{toStore(objectstore.PinForGet{Job: theirs, Client: client(here), ID: object(others)}), toStore(objectstore.PinForGet{Client: client(here), ID: object(theirs)})}, []Msg{
			toStore(objectstore.PinForGet{Job: mine, Client: client(here), ID: object(theirs)}), toStore(objectstore.PinForGet{Client: client(here), ID: object(mine)}),
			toStore(objectstore.PinForGet{Job: theirs, Client: client(there), ID: object(theirs)}),
		}},
		{[]Msg{toStore(objectstore.UnpinForGet{Client: client(here)})}, []Msg{toStore(objectstore.UnpinForGet{Client: client(third)})}},
		{[]Msg{toStore(objectstore.PinArgs{Job: theirs, Task: task(theirs), Worker: client(here), IDs: []ids.ObjectID{object(others)}})}, []Msg{
			toStore(objectstore.PinArgs{Job: mine, Task: task(theirs), Worker: client(here)}), toStore(objectstore.PinArgs{Job: theirs, Task: task(mine), Worker: client(here)}),
			toStore(objectstore.PinArgs{Job: theirs, Task: task(theirs), Worker: client(there)}),
		}},
		{[]Msg{toStore(objectstore.ReadAhead{IDs: []ids.ObjectID{object(others)}})}, []Msg{&ToStore{Job: mine, Msg: objectstore.ReadAhead{}}}},
		{[]Msg{toStore(objectstore.UnpinArgs{Task: task(theirs)})}, []Msg{toStore(objectstore.UnpinArgs{Task: task(mine)})}},
		{[]Msg{toStore(objectstore.AbandonArgs{Task: task(theirs)})}, []Msg{toStore(objectstore.AbandonArgs{Task: task(mine)})}},
		{[]Msg{toStore(objectstore.KeepArgs{Job: theirs})}, []Msg{toStore(objectstore.KeepArgs{Job: mine})}},
		{[]Msg{toStore(objectstore.ArgsIdle{Task: task(theirs)})}, []Msg{toStore(objectstore.ArgsIdle{Task: task(mine)})}},
		{[]Msg{toStore(objectstore.GoOn{Task: task(theirs), Client: client(here)}), toStore(objectstore.GoOn{Task: task(others), Client: client(here)})}, []Msg{toStore(objectstore.GoOn{Task: task(theirs), Client: client(third)})}},
		{[]Msg{toStore(objectstore.ListObjects{Job: theirs})}, []Msg{toStore(objectstore.ListObjects{Job: mine})}},
		{[]Msg{toStore(objectstore.DropJob{Job: theirs})}, []Msg{toStore(objectstore.DropJob{Job: mine}), toStore(objectstore.DropJob{Job: second})}},

		{[]Msg{fromStore(objectstore.ArgsPinned{Task: task(mine)})}, []Msg{&FromStore{Job: theirs, Msg: objectstore.ArgsPinned{Task: task(theirs)}}, fromStore(objectstore.ArgsPinned{Task: task(others)})}},
		{[]Msg{fromStore(objectstore.ArgsWait{Task: task(mine)})}, []Msg{fromStore(objectstore.ArgsWait{Task: task(others)})}},
		{[]Msg{fromStore(objectstore.ArgsRefused{Task: task(mine)})}, []Msg{fromStore(objectstore.ArgsRefused{Task: task(others)})}},
		{[]Msg{fromStore(objectstore.CreateWaits{Task: task(mine), Client: client(there)}), fromStore(objectstore.CreateWaits{Task: task(others), Client: client(there)})}, []Msg{fromStore(objectstore.CreateWaits{Task: task(mine), Client: client(here)})}},
		{[]Msg{fromStore(objectstore.CreateReady{Task: task(mine), Client: client(there)}), fromStore(objectstore.CreateReady{Task: task(others), Client: client(there)})}, []Msg{fromStore(objectstore.CreateReady{Task: task(mine), Client: client(here)})}},
		{[]Msg{fromStore(objectstore.Lost{ID: object(others), Client: client(there)}), fromStore(objectstore.Lost{ID: object(others), Task: task(mine)})}, []Msg{
			fromStore(objectstore.Lost{ID: object(mine), Client: client(here)}), fromStore(objectstore.Lost{ID: object(mine), Task: task(others)}),
		}},
		{[]Msg{fromStore(objectstore.Imported{ID: object(mine)})}, []Msg{fromStore(objectstore.Imported{ID: object(others)})}},
		{[]Msg{fromStore(objectstore.Evicted{ID: object(mine)})}, []Msg{fromStore(objectstore.Evicted{ID: object(others)})}},
		{[]Msg{fromStore(objectstore.Inventory{Job: mine, Objects: []objectstore.SealedInfo{{ID: object(mine)}}, Left: []objectstore.Left{{ID: object(mine)}}})}, []Msg{
			fromStore(objectstore.Inventory{Job: others}), fromStore(objectstore.Inventory{Job: mine, Objects: []objectstore.SealedInfo{{ID: object(others)}}}),
			fromStore(objectstore.Inventory{Job: mine, Left: []objectstore.Left{{ID: object(others)}}}), fromStore(objectstore.Inventory{Job: mine, Unsealed: []objectstore.Left{{ID: object(others)}}}),
		}},

		{[]Msg{
			words(), words(&wire.AddRef{ID: object(mine)}, &wire.Get{ID: object(mine)}, &wire.Release{IDs: []ids.ObjectID{object(mine)}}, &wire.Cancel{Task: task(mine)}),
			words(&wire.Holdings{Handles: []ids.ObjectID{object(mine)}}), words(&wire.Resolved{ID: object(theirs)}), words(&wire.Resync{}),
		}, []Msg{
			&PeerWords{From: others, To: mine}, &PeerWords{From: mine, To: mine}, &PeerWords{From: theirs, To: others}, &PeerWords{From: theirs, To: second},
			words(&wire.AddRef{ID: object(others)}), words(&wire.Get{ID: object(theirs)}), words(&wire.Resync{}, &wire.Get{ID: object(others)}),
			words(&wire.Release{IDs: []ids.ObjectID{object(mine), object(others)}}), words(&wire.Cancel{Task: task(others)}),
			words(&wire.Holdings{Handles: []ids.ObjectID{object(others)}}), words(&wire.Resolved{ID: object(mine)}), words(&wire.Resolved{ID: object(second)}),
		}},
		{[]Msg{toPeer(owner.Bring{ID: object(mine), Node: third})}, []Msg{toPeer(owner.Bring{ID: object(others)}), &ToPeer{From: others, To: mine, Msg: owner.Bring{ID: object(mine)}}}},
		{[]Msg{toPeer(owner.Brought{ID: object(theirs)})}, []Msg{toPeer(owner.Brought{ID: object(mine)}), toPeer(owner.Brought{ID: object(second)})}},
		{[]Msg{toPeer(owner.BorrowLost{Lost: objectstore.Lost{ID: object(mine)}})}, []Msg{toPeer(owner.BorrowLost{Lost: objectstore.Lost{ID: object(theirs)}})}},
		{[]Msg{toPeer(owner.Passing{Refs: []ids.ObjectID{object(mine)}})}, []Msg{toPeer(owner.Passing{Refs: []ids.ObjectID{object(mine), object(others)}})}},
		{[]Msg{toPeer(owner.Arrived{Token: 1})}, []Msg{&ToPeer{From: others, To: mine, Msg: owner.Arrived{}}, &ToPeer{From: theirs, To: others, Msg: owner.Arrived{}}}},
		{[]Msg{toPeer(owner.Sync{Token: 1}), toPeer(owner.Synced{Token: 1}), toPeer(owner.Leaving{}), toPeer(owner.Left{})}, []Msg{&ToPeer{From: others, To: mine, Msg: owner.Sync{}}, &ToPeer{From: theirs, To: others, Msg: owner.Synced{}}, &ToPeer{From: mine, To: mine, Msg: owner.Leaving{}}, &ToPeer{From: others, To: mine, Msg: owner.Left{}}}},
		{[]Msg{toPeer(owner.JobGone{})}, []Msg{&ToPeer{From: mine, To: mine, Msg: owner.JobGone{}}, &ToPeer{From: others, To: mine, Msg: owner.JobGone{}}}},
	} {
		for _, m := range c.may {
			seen[name(m)] = true
			if err := Check(m, there, here); err != nil {
				t.Errorf("%+v: %v", m, err)
			}
		}
		for _, m := range c.not {
			if err := Check(m, there, here); !errors.Is(err, errs.ErrPermission) {
				t.Errorf("%s %+v: %v, want it refused", name(m), m, err)
			}
		}
	}
	eachMessage(t, func(t *testing.T, draw func(source) Msg) {
		if m := draw(seeded(1)); !seen[name(m)] {
			t.Errorf("who may send %s?", name(m))
		}
	})
}

// What has no place among the messages is an error, and not passed over.
func TestAMessageWithoutAPlaceIsRefused(t *testing.T) {
	theirs, mine := ids.JobID(there.ID(7)), ids.JobID(here.ID(7))
	for _, m := range []Msg{
		nil, &ToSched{Job: theirs}, &ToSched{Job: theirs, Msg: sched.Tick{}}, &FromSched{Job: mine}, &FromSched{Job: mine, Msg: sched.Unable{}},
		&PeerWords{From: theirs, To: mine, Msgs: []wire.Msg{&wire.Submit{}}}, &ToPeer{From: theirs, To: mine}, &ToPeer{From: theirs, To: mine, Msg: owner.Rejoined{}},
		&ToPeer{From: theirs, To: mine, Msg: owner.Words{}},
		&ToStore{Job: theirs}, &ToStore{Job: theirs, Msg: objectstore.NodeGone{Node: here}}, &FromStore{Job: mine}, &FromStore{Job: mine, Msg: objectstore.Packed{}},
	} {
		if err := Check(m, there, here); !errors.Is(err, errs.ErrProtocol) {
			t.Errorf("%T%+v: %v", m, m, err)
		}
	}
}
