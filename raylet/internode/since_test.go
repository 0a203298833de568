package internode

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/raylet/sched"
)

// To a node of an older version nothing is sent that it lacks: neither a message, nor one in an envelope that it knows. What it knows goes on, also of the same
// batch. Before a version is agreed it is taken for the oldest.
func TestNothingIsSentThatAVersionLacks(t *testing.T) {
	added := map[reflect.Type]uint32{reflect.TypeFor[*CloseJob](): MinVersion + 1, reflect.TypeFor[sched.Return](): MinVersion + 2}
	for _, c := range []struct {
		agreed       uint32
		close, inner bool
	}{{0, false, false}, {MinVersion, false, false}, {MinVersion + 1, true, false}, {MinVersion + 2, true, true}, {MinVersion + 3, true, true}} {
		e := Encoder{Agreed: c.agreed, since: added}
		for _, m := range []struct {
			msg  Msg
			goes bool
		}{{&CloseJob{Job: 1}, c.close}, {&ToSched{Job: 1, Msg: sched.Return{Lease: 1}}, c.inner}, {&ToSched{Job: 1, Msg: sched.DropJob{Job: 1}}, true}, {&OpenJob{Job: 1}, true}} {
			before := []byte("before")
			b, err := e.Append(before, m.msg)
			switch {
			case m.goes && (err != nil || len(b) == len(before)):
				t.Errorf("agreed on %d, %T is not sent: %v", c.agreed, m.msg, err)
			case !m.goes && (!errors.Is(err, errs.ErrVersion) || string(b) != "before" || !strings.Contains(err.Error(), fmt.Sprintf("agreed on version %d", max(c.agreed, MinVersion)))):
				t.Errorf("agreed on %d, %T is sent or refused otherwise: %v", c.agreed, m.msg, err)
			}
		}
	}
}

// What the record of a version has and the one before lacks is known to have come with it.
func TestWhatAVersionAddsIsNoted(t *testing.T) {
	names := func(version int) map[string]bool {
		data, err := os.ReadFile(recorded(version))
		if err != nil {
			t.Fatal(err)
		}
		of := make(map[string]bool)
		for line := range strings.Lines(string(data)) {
			name, _, _ := strings.Cut(line, " ")
			of[name] = true
		}
		return of
	}
	came := make(map[string]uint32)
	for version := Version; version >= MinVersion; version-- {
		for name := range names(version) {
			came[name] = uint32(version)
		}
	}
	eachMessage(t, func(t *testing.T, draw func(source) Msg) {
		m := draw(seeded(1))
		name := t.Name()[strings.Index(t.Name(), "/")+1:]
		noted := max(since[reflect.TypeOf(m)], MinVersion)
		if in := carried(m); in != nil {
			noted = max(noted, since[reflect.TypeOf(in)])
		}
		if noted != came[name] {
			t.Errorf("by the records it came with version %d, noted is %d", came[name], noted)
		}
	})
}
