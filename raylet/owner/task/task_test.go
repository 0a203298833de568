package task

import (
	"fmt"
	"strings"
	"testing"
)

// The table as it is meant, one line a state: what is not here is rejected.
const want = `
NONE: submit>PENDING_ARGS_AVAIL
PENDING_ARGS_AVAIL: ready>PENDING_NODE_ASSIGNMENT ready-call>PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY fail>FAILED cancel>CANCELLED
PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY: fetch>PENDING_ARGS_FETCH push>SUBMITTED_TO_WORKER requeue>PENDING_ARGS_AVAIL fail>FAILED cancel>CANCELLED
PENDING_NODE_ASSIGNMENT: fetch>PENDING_ARGS_FETCH push>SUBMITTED_TO_WORKER requeue>PENDING_ARGS_AVAIL fail>FAILED cancel>CANCELLED
PENDING_ARGS_FETCH: no-room>PENDING_OBJ_STORE_MEM_AVAIL push>SUBMITTED_TO_WORKER requeue>PENDING_ARGS_AVAIL fail>FAILED cancel>CANCELLED
PENDING_OBJ_STORE_MEM_AVAIL: push>SUBMITTED_TO_WORKER requeue>PENDING_ARGS_AVAIL fail>FAILED cancel>CANCELLED
PENDING_RETRY: requeue>PENDING_ARGS_AVAIL fail>FAILED cancel>CANCELLED
SUBMITTED_TO_WORKER: start>RUNNING block>RUNNING_IN_GET requeue>PENDING_ARGS_AVAIL delay>PENDING_RETRY finish>FINISHED fail>FAILED cancel>CANCELLED
RUNNING: block>RUNNING_IN_GET requeue>PENDING_ARGS_AVAIL delay>PENDING_RETRY finish>FINISHED fail>FAILED cancel>CANCELLED
RUNNING_IN_GET: block>RUNNING_IN_GET unblock>RUNNING requeue>PENDING_ARGS_AVAIL delay>PENDING_RETRY finish>FINISHED fail>FAILED cancel>CANCELLED
FINISHED: delay>PENDING_RETRY rerun>PENDING_ARGS_AVAIL
FAILED:
CANCELLED:
`

func TestEveryPairIsLegalOrRejectedAsInTheTable(t *testing.T) {
	var got strings.Builder
	got.WriteString("\n")
	for _, s := range States() {
		fmt.Fprintf(&got, "%v:", s)
		for _, e := range Events() {
			if to, ok := Next(s, e); ok {
				fmt.Fprintf(&got, " %v>%v", e, to)
			}
		}
		got.WriteString("\n")
	}
	if got.String() != want {
		t.Errorf("the table is\n%s", got.String())
	}
}

func TestOutOfRangeIsRejected(t *testing.T) {
	if _, ok := Next(State(200), Submit); ok {
		t.Error("a state that there is not moves")
	}
	if _, ok := Next(None, Event(200)); ok {
		t.Error("an event that there is not moves")
	}
	if State(200).String() != "INVALID" || Event(200).String() != "invalid" {
		t.Error("what there is not has a name")
	}
}

// A task that has not ended can be cancelled and can fail, wherever it is.
func TestWhatHasNotEndedCanEnd(t *testing.T) {
	for _, s := range States() {
		if s == None || s.Terminal() {
			continue
		}
		for _, e := range []Event{Fail, Cancel} {
			if to, ok := Next(s, e); !ok || !to.Terminal() {
				t.Errorf("%v cannot %v", s, e)
			}
		}
		if _, finishes := Next(s, Finish); finishes != s.OnWorker() {
			t.Errorf("%v: finishes %v, on a worker %v", s, finishes, s.OnWorker())
		}
	}
}

func TestNamesAreReadBack(t *testing.T) {
	for _, s := range States() {
		if got, ok := Parse(s.String()); !ok || got != s {
			t.Errorf("Parse(%q) = %v, %v", s.String(), got, ok)
		}
	}
	if _, ok := Parse("SLEEPING"); ok {
		t.Error("an unknown name is read")
	}
}
