package internode

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"mobula/internal/ids"
	"mobula/wire"
)

// timeFields are the fields of the local protocol that are times: no other field is written as they are.
func timeFields(t *testing.T) (found []string) {
	d, err := schema()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[protoreflect.FullName]bool)
	var walk func(protoreflect.MessageDescriptor)
	walk = func(m protoreflect.MessageDescriptor) {
		if seen[m.FullName()] {
			return
		}
		seen[m.FullName()] = true
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			switch {
			case f.Kind() == protoreflect.Sfixed64Kind:
				found = append(found, string(f.FullName()))
			case f.Message() != nil:
				walk(f.Message())
			}
		}
	}
	walk(d)
	return found
}

// Each time that crosses nodes is moved to the clock of the node that reads it, and nothing else is. A time that is new in the protocol fails here.
func TestTimesAreShifted(t *testing.T) {
	want := []string{"TaskSpec.deadline", "TaskSpec.submitted", "Times.received", "Times.started", "Times.ended", "Welcome.clock", "EndedCall.at"} // a Welcome, and what is said of calls that go straight, stay on their node
	for _, name := range timeFields(t) {
		short := strings.TrimPrefix(name, "mobula.v1.")
		if i := slices.Index(want, short); i >= 0 {
			want = slices.Delete(want, i, i+1)
		} else {
			t.Errorf("%s is a time that ShiftTimes does not know", name)
		}
	}
	if len(want) > 0 {
		t.Errorf("the protocol has no %v any more", want)
	}

	const by = 1000
	id := ids.RootTask(7, 1)
	spec := func(at int64) *wire.TaskSpec {
		return &wire.TaskSpec{ID: id, Opts: &wire.TaskOptions{Func: "f"}, Seq: 5, Deadline: at, Submitted: at}
	}
	to := func(at int64) []wire.Msg {
		return []wire.Msg{
			&wire.Drain{}, &wire.Exec{Lease: 5, Tasks: []wire.ExecTask{{Spec: spec(at), Attempt: 1}, {Spec: spec(at), Attempt: 2}}}, &wire.Exec{Lease: 6, Tasks: []wire.ExecTask{{Spec: spec(at)}}},
		}
	}
	from := func(at int64) []wire.Msg {
		return []wire.Msg{
			&wire.Submit{Spec: spec(at)}, &wire.Done{Task: id, Attempt: 3, Lease: 5, Times: wire.Times{Received: at, Started: at, Ended: at}}, &wire.Drain{},
		}
	}
	for _, of := range []func(int64) Msg{
		func(at int64) Msg {
			return &ToClients{Job: 7, Items: []ClientMsgs{{Client: 1, Msgs: to(at)}, {Client: 2, Msgs: to(at)}}}
		},
		func(at int64) Msg { return &FromClients{Job: 7, Items: []ClientMsgs{{Client: 1, Msgs: from(at)}}} },
		func(int64) Msg { return &CloseJob{Job: 7} },
	} {
		for at, then := range map[int64]int64{5: 5 + by, 0: 0} { // none stays none
			got, err := decode(encode(t, of(at)))
			if err != nil {
				t.Fatal(err)
			}
			if ShiftTimes(got[0], by); !reflect.DeepEqual(readable(t, got...), []Msg{of(then)}) {
				t.Errorf("%d is shifted to %+v", at, got[0])
			}
		}
	}
}
