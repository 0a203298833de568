package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
)

// kept is how large a result is that is kept in the store of its node: larger than a value inside a message.
const kept = 256 << 10

// counted writes down in a directory on which node it runs, takes its time, and gives a result of so many bytes, each of them its number.
var counted = mobula.Register3("e2e/cluster/counted", func(ctx context.Context, dir string, number, size int) (_ []byte, err error) {
	at, err := mobula.GetRuntimeContext(ctx)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(number)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(at.NodeID + "\n")
	if bad := f.Close(); err == nil {
		err = bad
	}
	select {
	case <-time.After(20 * time.Millisecond):
		return slices.Repeat([]byte{byte(number)}, size), err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
})

// bytesOf reads a result where it runs, so that the node has a copy of it.
var bytesOf = mobula.Register1("e2e/cluster/bytesOf", func(_ context.Context, b []byte) (int, error) { return len(b), nil })

// ranOn are the nodes on which a task has run, in order.
func ranOn(t *testing.T, dir string, number int) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(number)))
	if os.IsNotExist(err) {
		return nil
	}
	must(t, err)
	return strings.Fields(string(text))
}

// Only what had its only copy on the node that was killed, or ran there, runs again, and once.
func TestWhatSurvivesAKillIsNotRunAgain(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	c := start(t, network(t, 3), "--store-size", fmt.Sprintf("%dMiB", harness.Size(64, 256)))
	n := c.Nodes()
	ctx, _ = connect(t, ctx, c)
	dir, victim, other := t.TempDir(), idOf(t, ctx, n[1]), idOf(t, ctx, n[2])
	nodes := []string{idOf(t, ctx, n[0]), victim, other}
	each := harness.Size(90, 900)

	// A third of the results are on each node: every fifth inside its owner, since it is small, the others in the node's store.
	size := func(number int) int {
		if number%5 == 0 {
			return 1
		}
		return kept
	}
	var refs []mobula.Ref[[]byte]
	submit := func(upTo int) {
		for i := len(refs); i < upTo; i++ {
			refs = append(refs, counted.Go(ctx, mobula.V(dir), mobula.V(i), mobula.V(size(i)), mobula.PreferNode(nodes[i%3])))
		}
	}
	submit(each)
	_, rest, err := mobula.Wait(ctx, refs, len(refs))
	must(t, err)
	if len(rest) > 0 {
		t.Fatalf("%d of %d tasks have not ended", len(rest), each)
	}

	// Half of what is on the victim is on another node too.
	copied := make(map[int]bool)
	var copies []mobula.Ref[int]
	for i, ref := range refs {
		if ran := ranOn(t, dir, i); len(ran) == 1 && ran[0] == victim && i%2 == 0 {
			copied[i] = true
			copies = append(copies, bytesOf.Go(ctx, ref, mobula.OnNode(other)))
		}
	}
	_, err = mobula.GetAll(ctx, copies)
	must(t, err)

	// As much again is under way when the victim is killed.
	submit(2 * each)
	harness.Eventually(t, ctx, "some of it has ended", func() bool {
		for i := each; i < each+each/3; i++ {
			if ranOn(t, dir, i) == nil {
				return false
			}
		}
		return true
	})
	must(t, n[1].Kill(ctx))
	got, err := mobula.GetAll(ctx, refs)
	must(t, err)

	again := 0
	for i, b := range got {
		if len(b) != size(i) || b[0] != byte(i) || b[len(b)-1] != byte(i) {
			t.Errorf("task %d gave %d bytes, the first %d", i, len(b), b[0])
		}
		ran := ranOn(t, dir, i)
		atVictim, survives := ran[0] == victim, copied[i] || i < each && size(i) == 1
		switch {
		case !atVictim || survives:
			if len(ran) != 1 {
				t.Errorf("task %d survived, and ran on %v; the victim is %s", i, ran, victim)
			}
		case i < each && len(ran) != 2:
			t.Errorf("the result of task %d was on the victim, and it ran on %v; the victim is %s", i, ran, victim)
		case len(ran) > 2:
			t.Errorf("task %d ran on %v; the victim is %s", i, ran, victim)
		}
		again += len(ran) - 1
	}
	t.Logf("%d of %d tasks ran again; %d that ran on the victim had a copy elsewhere", again, len(got), len(copied))
	if again == 0 || len(copied) == 0 {
		t.Error("nothing was lost, or nothing survived: this shows nothing")
	}
}
