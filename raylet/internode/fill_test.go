package internode

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/cluster"
	"mobula/raylet/owner"
	"mobula/raylet/sched"
	"mobula/wire"
)

// newMsg makes an empty message of each kind.
var newMsg = map[Kind]func() Msg{
	KindOpenJob: func() Msg { return new(OpenJob) }, KindCloseJob: func() Msg { return new(CloseJob) },
	KindToClients: func() Msg { return new(ToClients) }, KindToSched: func() Msg { return new(ToSched) },
	KindToStore: func() Msg { return new(ToStore) }, KindJobClosed: func() Msg { return new(JobClosed) },
	KindClientJoined: func() Msg { return new(ClientJoined) }, KindClientGone: func() Msg { return new(ClientGone) },
	KindFromClients: func() Msg { return new(FromClients) }, KindFromSched: func() Msg { return new(FromSched) },
	KindFromStore: func() Msg { return new(FromStore) }, KindReport: func() Msg { return new(Report) },
	KindAskTime: func() Msg { return new(AskTime) }, KindTellTime: func() Msg { return new(TellTime) },
	KindAsk: func() Msg { return new(Ask) }, KindAnswer: func() Msg { return new(Answer) }, KindWorkerOutput: func() Msg { return new(WorkerOutput) },
	KindFindBlob: func() Msg { return new(FindBlob) }, KindBlobFound: func() Msg { return new(BlobFound) },
	KindPullBlob: func() Msg { return new(PullBlob) }, KindBlobChunk: func() Msg { return new(BlobChunk) },
	KindOfferBlob: func() Msg { return new(OfferBlob) }, KindBlobTaken: func() Msg { return new(BlobTaken) },
	KindPeerWords: func() Msg { return new(PeerWords) }, KindToPeer: func() Msg { return new(ToPeer) },
}

// insides are the messages that may be inside one of a kind.
var insides = map[Kind][]any{
	KindToSched: {
		sched.Want{}, sched.Return{}, sched.BlockCPU{}, sched.UnblockCPU{}, sched.DropJob{}, sched.ActorUp{}, sched.DrainWorker{}, sched.KillWorker{},
		sched.OwnerRestarted{}, sched.Holdings{},
	},
	KindFromSched: {
		sched.Granted{}, sched.Reclaim{}, sched.Revoked{}, sched.Resumed{}, sched.Infeasible{}, sched.Feasible{}, sched.Resync{},
	},
	KindToStore: {
		objectstore.SealObject{}, objectstore.DropAttempt{}, objectstore.PinForGet{}, objectstore.UnpinForGet{}, objectstore.PinArgs{}, objectstore.ReadAhead{},
		objectstore.UnpinArgs{}, objectstore.AbandonArgs{}, objectstore.KeepArgs{}, objectstore.ArgsIdle{}, objectstore.Free{}, objectstore.Located{}, objectstore.ListObjects{},
		objectstore.DropJob{}, objectstore.GoOn{},
	},
	KindFromStore: {
		objectstore.ArgsPinned{}, objectstore.ArgsWait{}, objectstore.ArgsRefused{}, objectstore.CreateWaits{}, objectstore.Lost{}, objectstore.Inventory{},
		objectstore.Imported{}, objectstore.Evicted{}, objectstore.CreateReady{},
	},
	KindToPeer: {owner.Bring{}, owner.Brought{}, owner.BorrowLost{}, owner.Passing{}, owner.Arrived{}, owner.JobGone{}, owner.Sync{}, owner.Synced{}, owner.Leaving{}, owner.Left{}},
}

// eachMessage runs f for every kind of message, and for each that may be inside.
func eachMessage(t *testing.T, f func(t *testing.T, draw func(source) Msg)) {
	t.Helper()
	for k := Kind(1); k < kindEnd; k++ {
		if newMsg[k] == nil || newMsg[k]().Kind() != k {
			t.Fatalf("kind %d (%v) has no constructor in this test", k, k)
		}
		for _, inside := range append([]any{}, insidesOf(k)...) {
			name := k.String()
			if inside != nil {
				name += fmt.Sprintf(" %T", inside)
			}
			t.Run(name, func(t *testing.T) { f(t, func(s source) Msg { return drawMsg(s, k, inside) }) })
		}
	}
}

func insidesOf(k Kind) []any {
	if list := insides[k]; list != nil {
		return list
	}
	return []any{nil}
}

// A source draws numbers; rapid's can shrink.
type source interface{ upTo(n int) int }

type rapidSource struct{ t *rapid.T }

func (s rapidSource) upTo(n int) int { return rapid.IntRange(0, n).Draw(s.t, "n") }

type randSource struct{ r *rand.Rand }

func seeded(seed uint64) source { return randSource{rand.New(rand.NewPCG(seed, 7))} }

func (s randSource) upTo(n int) int { return s.r.IntN(n + 1) }

// drawMsg fills every field of a message with something random, empty included.
func drawMsg(s source, k Kind, inside any) Msg {
	m := newMsg[k]()
	v := reflect.ValueOf(m).Elem()
	fill(s, v)
	if inside != nil {
		of := reflect.New(reflect.TypeOf(inside)).Elem()
		fill(s, of)
		v.FieldByName("Msg").Set(of)
	}
	return m
}

// draw is drawMsg of any kind.
func draw(s source) Msg {
	k := Kind(1 + s.upTo(int(kindEnd)-2))
	of := insidesOf(k)
	return drawMsg(s, k, of[s.upTo(len(of)-1)])
}

var enumMost = map[reflect.Type]int{
	reflect.TypeFor[wire.Role](): int(wire.RoleTool), reflect.TypeFor[wire.TaskKind](): int(wire.TaskActorCall),
	reflect.TypeFor[cluster.State](): int(cluster.Dead), reflect.TypeFor[cluster.Kind](): int(cluster.Affinity),
	reflect.TypeFor[wire.LabelOp](): int(wire.LabelAbsent), reflect.TypeFor[wire.Affinity](): int(wire.AffinitySoft),
	reflect.TypeFor[wire.OnPanic](): int(wire.PanicEscalates),
	reflect.TypeFor[BlobKind]():     int(BlobFunction),
}

var texts = []string{"", "a", "math/add", "größe", "Иван"}

func number(s source) uint64 {
	switch s.upTo(3) {
	case 0:
		return 0
	case 1:
		return uint64(s.upTo(300))
	case 2:
		return ^uint64(s.upTo(300))
	}
	return uint64(s.upTo(1<<31-1))<<32 | uint64(s.upTo(1<<31-1))
}

func fill(s source, v reflect.Value) {
	if most, ok := enumMost[v.Type()]; ok {
		v.SetUint(uint64(s.upTo(most)))
		return
	}
	switch v.Interface().(type) {
	case []wire.Msg:
		v.Set(reflect.ValueOf(locals(s)))
		return
	case *errs.Error:
		v.Set(reflect.ValueOf(failure(s, 0)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(s.upTo(1) == 1)
	case reflect.Int, reflect.Int32, reflect.Int64:
		n := int64(number(s))
		v.SetInt(n >> (64 - 8*v.Type().Size()))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(number(s) >> (64 - 8*v.Type().Size()))
	case reflect.String:
		v.SetString(texts[s.upTo(len(texts)-1)])
	case reflect.Array:
		for i := range v.Len() {
			fill(s, v.Index(i))
		}
	case reflect.Slice:
		if n := s.upTo(3); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		for i := range v.Len() {
			fill(s, v.Index(i))
		}
	case reflect.Map:
		for range s.upTo(3) {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(s, key)
			fill(s, elem)
			v.SetMapIndex(key, elem)
		}
	case reflect.Pointer:
		if s.upTo(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(s, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(s, v.Field(i))
		}
	}
}

func failure(s source, depth int) *errs.Error {
	if s.upTo(2) == 0 || depth == 3 {
		return nil
	}
	x := &errs.Error{Code: errs.Code(s.upTo(60)), Msg: texts[s.upTo(4)], Name: texts[s.upTo(4)], Stack: texts[s.upTo(4)]}
	if cause := failure(s, depth+1); cause != nil {
		x.Cause = append(x.Cause, cause)
	}
	return x
}

// locals are some messages of the local protocol, of which package wire tests that it encodes them: of one kind, since a generated decoder does not keep
// the order of several.
func locals(s source) (msgs []wire.Msg) {
	id := ids.RootTask(7, number(s))
	kind := s.upTo(5)
	for range s.upTo(3) {
		switch value := (wire.Value{Meta: []byte("m"), Data: make([]byte, 1+s.upTo(100)), Refs: []ids.ObjectID{id.Put(1)}}); kind {
		case 0:
			spec := &wire.TaskSpec{ID: id, Opts: &wire.TaskOptions{Func: "f"}, Args: []wire.Arg{{Value: value}, {Ref: id.Return(1)}}}
			msgs = append(msgs, &wire.Exec{Lease: 5, Tasks: []wire.ExecTask{
				{Spec: spec, Attempt: 1, Args: []wire.ArgValue{{Index: 1, Result: wire.Result{Kind: wire.ResultStored, Size: 9}, Extent: wire.Extent{File: 1, Off: 2, Size: 9}}}},
			}})
		case 1:
			msgs = append(msgs, &wire.Done{Task: id, Lease: 5, Results: []wire.Result{{Kind: wire.ResultInline, Value: value}}})
		case 2:
			msgs = append(msgs, &wire.Release{IDs: []ids.ObjectID{id.Return(0), id.Put(uint32(s.upTo(9)))}})
		case 3:
			msgs = append(msgs, &wire.Resolved{ID: id.Return(0), Result: wire.Result{Kind: wire.ResultError, Err: &errs.Error{Code: errs.CodeTaskFailed, Msg: "x"}}})
		case 4:
			msgs = append(msgs, &wire.Drain{})
		case 5:
			msgs = append(msgs, &wire.Get{ID: id.Return(s.upTo(3)), Fetch: true})
		}
	}
	return msgs
}

func encode(t testing.TB, msgs ...Msg) []byte {
	t.Helper()
	b, err := (&Encoder{Agreed: Version}).Append(nil, msgs...)
	if err != nil {
		t.Fatalf("%+v: %v", msgs, err)
	}
	return b
}

// decode reads a copy of a payload.
func decode(payload []byte) (msgs []Msg, err error) {
	err = new(Decoder).Decode(append([]byte(nil), payload...), func(m Msg) error {
		msgs = append(msgs, m)
		return nil
	})
	return msgs, err
}

// readable decodes what was passed on for clients.
func readable(t testing.TB, msgs ...Msg) []Msg {
	t.Helper()
	for _, m := range msgs {
		to, ok := m.(*ToClients)
		if !ok {
			continue
		}
		for i := range to.Items {
			var all []wire.Msg
			for _, m := range to.Items[i].Msgs {
				some, err := m.(*wire.Encoded).Messages()
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, some...)
			}
			to.Items[i].Msgs = all
		}
	}
	return msgs
}
