package wire

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire/pb"
)

// newMsg makes an empty message of each kind.
var newMsg = map[Kind]func() Msg{
	KindHello: func() Msg { return new(Hello) }, KindWelcome: func() Msg { return new(Welcome) },
	KindBye: func() Msg { return new(Bye) }, KindSubmit: func() Msg { return new(Submit) },
	KindPutValue: func() Msg { return new(PutValue) }, KindSeal: func() Msg { return new(Seal) },
	KindGet: func() Msg { return new(Get) }, KindUnget: func() Msg { return new(Unget) },
	KindAddRef: func() Msg { return new(AddRef) }, KindRelease: func() Msg { return new(Release) },
	KindCancel: func() Msg { return new(Cancel) }, KindKillActor: func() Msg { return new(KillActor) },
	KindResolved: func() Msg { return new(Resolved) }, KindCreate: func() Msg { return new(Create) },
	KindCreated: func() Msg { return new(Created) }, KindAbort: func() Msg { return new(Abort) },
	KindUnpin: func() Msg { return new(Unpin) }, KindMapFile: func() Msg { return new(MapFile) },
	KindExec: func() Msg { return new(Exec) }, KindCancelTask: func() Msg { return new(CancelTask) },
	KindStopActor: func() Msg { return new(StopActor) }, KindDrain: func() Msg { return new(Drain) },
	KindDone: func() Msg { return new(Done) }, KindStreamItem: func() Msg { return new(StreamItem) },
	KindStreamAck: func() Msg { return new(StreamAck) }, KindBlocked: func() Msg { return new(Blocked) },
	KindUnblocked: func() Msg { return new(Unblocked) }, KindResume: func() Msg { return new(Resume) },
	KindStats: func() Msg { return new(Stats) }, KindRequest: func() Msg { return new(Request) },
	KindReply: func() Msg { return new(Reply) }, KindResync: func() Msg { return new(Resync) },
	KindHoldings: func() Msg { return new(Holdings) }, KindCredit: func() Msg { return new(Credit) },
	KindCollect: func() Msg { return new(Collect) }, KindStreamNext: func() Msg { return new(StreamNext) },
	KindUnneeded: func() Msg { return new(Unneeded) }, KindActorStopped: func() Msg { return new(ActorStopped) },
	KindWatchActor: func() Msg { return new(WatchActor) }, KindActorNews: func() Msg { return new(ActorNews) },
	KindUnmapFile: func() Msg { return new(UnmapFile) }, KindOpenChannel: func() Msg { return new(OpenChannel) },
	KindMethod: func() Msg { return new(Method) }, KindCall: func() Msg { return new(Call) },
	KindWithdraw: func() Msg { return new(Withdraw) }, KindTook: func() Msg { return new(Took) },
	KindAnswered: func() Msg { return new(Answered) }, KindLastAnswer: func() Msg { return new(LastAnswer) },
	KindShare:       func() Msg { return new(Share) },
	KindShared:      func() Msg { return new(Shared) },
	KindAskWay:      func() Msg { return new(AskWay) },
	KindAskWord:     func() Msg { return new(AskWord) },
	KindHangUp:      func() Msg { return new(HangUp) },
	KindLinked:      func() Msg { return new(Linked) },
	KindAdopt:       func() Msg { return new(Adopt) },
	KindEndedCalls:  func() Msg { return new(EndedCalls) },
	KindMark:        func() Msg { return new(Mark) },
	KindMarked:      func() Msg { return new(Marked) },
	KindCancelCall:  func() Msg { return new(CancelCall) },
	KindWay:         func() Msg { return new(Way) },
	KindOver:        func() Msg { return new(Over) },
	KindAdopted:     func() Msg { return new(Adopted) },
	KindHostChannel: func() Msg { return new(HostChannel) },
	KindStillThere:  func() Msg { return new(StillThere) },
	KindWhere:       func() Msg { return new(Where) },
	KindUnwanted:    func() Msg { return new(Unwanted) },
	KindDropped:     func() Msg { return new(Dropped) },
	KindLives:       func() Msg { return new(Lives) },
	KindTold:        func() Msg { return new(Told) },
	KindRuns:        func() Msg { return new(Runs) },
	KindRan:         func() Msg { return new(Ran) },
	KindCancelMade:  func() Msg { return new(CancelMade) },
	KindWaits:       func() Msg { return new(Waits) },
	KindWaitOver:    func() Msg { return new(WaitOver) },
	KindStillWaits:  func() Msg { return new(StillWaits) },
	KindCannotBegin: func() Msg { return new(CannotBegin) },
}

// eachKind runs f for every kind of message.
func eachKind(t *testing.T, f func(t *testing.T, k Kind)) {
	t.Helper()
	for k := Kind(1); k < kindEnd; k++ {
		if newMsg[k] == nil || newMsg[k]().Kind() != k {
			t.Fatalf("kind %d (%v) has no constructor in this test", k, k)
		}
		t.Run(k.String(), func(t *testing.T) { f(t, k) })
	}
}

// An intSource draws numbers; rapid's can shrink.
type intSource interface{ upTo(n int) int }

type rapidSource struct{ t *rapid.T }

func (s rapidSource) upTo(n int) int { return rapid.IntRange(0, n).Draw(s.t, "n") }

// drawMsg fills every field of a message of kind k with something random, empty included.
func drawMsg(s intSource, k Kind) Msg {
	m := newMsg[k]()
	fill(s, reflect.ValueOf(m).Elem(), 0)
	return m
}

// descriptor is the type of what travels beside a message.
var descriptor = reflect.TypeFor[*os.File]()

var enumMost = map[reflect.Type]int{
	reflect.TypeFor[Role](): int(RoleTool), reflect.TypeFor[Component](): int(ComponentStore),
	reflect.TypeFor[TaskKind](): int(TaskActorCall), reflect.TypeFor[ResultKind](): int(ResultError),
	reflect.TypeFor[ActorState](): int(ActorDead), reflect.TypeFor[LabelOp](): int(LabelAbsent), reflect.TypeFor[Affinity](): int(AffinitySoft),
	reflect.TypeFor[OnPanic](): int(PanicEscalates), reflect.TypeFor[Said](): int(SaidCulprit), reflect.TypeFor[Next](): int(NextSame),
}

var texts = []string{"", "a", "math/add", "größe", "Иван", strings.Repeat("x", 127), strings.Repeat("y", 128), strings.Repeat("long ", 180)}

func number(s intSource) uint64 {
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

func fill(s intSource, v reflect.Value, depth int) {
	if most, ok := enumMost[v.Type()]; ok {
		v.SetUint(uint64(s.upTo(most)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(s.upTo(1) == 1)
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(number(s)))
		if v.Kind() == reflect.Int32 {
			v.SetInt(int64(int32(v.Int())))
		}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(number(s) >> (64 - 8*v.Type().Size()))
	case reflect.String:
		v.SetString(texts[s.upTo(len(texts)-1)])
	case reflect.Array:
		for i := range v.Len() {
			fill(s, v.Index(i), depth)
		}
	case reflect.Slice:
		fillSlice(s, v, depth)
	case reflect.Pointer:
		fillPointer(s, v, depth)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Type != descriptor && f.IsExported() {
				fill(s, v.Field(i), depth+1)
			}
		}
	}
	fixUp(s, v)
}

func fillSlice(s intSource, v reflect.Value, depth int) {
	n := s.upTo(3)
	if depth > 4 {
		n = 0
	}
	if n == 0 {
		return
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		n = []int{0, 1, 40, 2000}[n]
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		if e := v.Index(i); e.Kind() == reflect.Uint8 {
			e.SetUint(uint64(i*7+n) & 0xff)
		} else {
			fill(s, e, depth+1)
		}
	}
}

func fillPointer(s intSource, v reflect.Value, depth int) {
	if v.Type() == reflect.TypeFor[*errs.Error]() && (depth > 5 || s.upTo(1) == 0) {
		return
	}
	v.Set(reflect.New(v.Type().Elem()))
	fill(s, v.Elem(), depth+1)
}

// fixUp makes valid what the protocol restricts.
func fixUp(s intSource, v reflect.Value) {
	if !v.CanAddr() {
		return
	}
	switch x := v.Addr().Interface().(type) {
	case *Value:
		if len(x.Meta) > 40 {
			x.Meta = x.Meta[:40]
		}
	case *Result:
		if x.Kind == ResultError && x.Err == nil {
			x.Kind = ResultStored
		}
	case *ExecTask:
		if len(x.Spec.Args) == 0 {
			x.Args = nil
		}
		for i := range x.Args {
			x.Args[i].Index = int32(s.upTo(len(x.Spec.Args) - 1))
		}
	case *Call:
		x.Spec.Kind, x.Spec.Opts, x.Spec.Actor = 0, nil, ids.ActorID{}
		if len(x.Spec.Args) == 0 {
			x.Values = nil
		}
		for i := range x.Values {
			x.Values[i].Index = int32(s.upTo(len(x.Spec.Args) - 1))
		}
	case *errs.Error:
		x.Cause = dropNil(x.Cause)
	case *ids.ActorID, *ids.TaskID, *ids.ObjectID:
		if s.upTo(5) == 0 {
			v.SetZero()
		}
	}
}

func dropNil(in []*errs.Error) (out []*errs.Error) {
	for _, e := range in {
		if e != nil {
			out = append(out, e)
		}
	}
	return out
}

// The generated message that stands for a Go value, field by field of the same name.

var capital = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

func snake(name string) string {
	return strings.ToLower(capital.ReplaceAllString(strings.ReplaceAll(name, "IDs", "Ids"), "${1}${3}_${2}${4}"))
}

func newPB(t testing.TB, k Kind) protoreflect.Message {
	t.Helper()
	fd := pb.File_mobula_proto.Messages().ByName("Frame").Fields().ByNumber(protoreflect.FieldNumber(k))
	if fd == nil || string(fd.Message().Name()) != k.String() {
		t.Fatalf("field %d of Frame is not message %v", k, k)
	}
	return new(pb.Frame).ProtoReflect().NewField(fd).List().NewElement().Message()
}

func toPB(t testing.TB, v reflect.Value, m protoreflect.Message) {
	t.Helper()
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		if f.Type() == descriptor || !v.Type().Field(i).IsExported() {
			continue
		}
		fd := m.Descriptor().Fields().ByName(protoreflect.Name(snake(name)))
		if fd == nil {
			t.Fatalf("%s has no field %s", m.Descriptor().Name(), snake(name))
		}
		if fd.IsList() {
			list := m.Mutable(fd).List()
			for j := range f.Len() {
				if fd.Message() != nil {
					e := list.NewElement()
					toPB(t, reflect.Indirect(f.Index(j)), e.Message())
					list.Append(e)
				} else {
					list.Append(scalar(f.Index(j), fd))
				}
			}
			continue
		}
		if fd.Message() != nil {
			if f.Kind() == reflect.Pointer && f.IsNil() || f.Kind() == reflect.Struct && f.IsZero() && name != "Result" && (name != "Value" || v.Type() != reflect.TypeFor[Arg]() || !v.Field(0).IsZero()) {
				continue
			}
			toPB(t, reflect.Indirect(f), m.Mutable(fd).Message())
			continue
		}
		if x := scalar(f, fd); !f.IsZero() && (fd.Kind() != protoreflect.BytesKind || len(x.Bytes()) > 0) {
			m.Set(fd, x)
		}
	}
}

func scalar(f reflect.Value, fd protoreflect.FieldDescriptor) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(rawBytes(f))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(f.String())
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(f.Bool())
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(f.Uint()))
	case protoreflect.Uint32Kind:
		if f.CanInt() {
			return protoreflect.ValueOfUint32(uint32(f.Int()))
		}
		return protoreflect.ValueOfUint32(uint32(f.Uint()))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(f.Uint())
	case protoreflect.Sint32Kind:
		return protoreflect.ValueOfInt32(int32(f.Int()))
	}
	return protoreflect.ValueOfInt64(f.Int())
}

func rawBytes(f reflect.Value) []byte {
	switch x := f.Interface().(type) {
	case ids.ObjectID:
		return append(append([]byte{}, x.Task[:]...), byte(x.Index>>24), byte(x.Index>>16), byte(x.Index>>8), byte(x.Index))
	case []byte:
		return x
	case string:
		return []byte(x)
	}
	out := make([]byte, f.Len())
	reflect.Copy(reflect.ValueOf(out), f)
	return out
}
