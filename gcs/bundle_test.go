package gcs

import (
	"reflect"
	"testing"
	"time"

	"mobula/internal/trust"
)

// The trust bundle is passed on as it is, each time that it is shown, and is in no list.
func TestTheTrustBundleIsPassedOn(t *testing.T) {
	c := NewCore()
	s := trust.SignedBundle{Body: []byte("b"), Signatures: [][]byte{[]byte("s")}}
	for range 2 {
		out := c.Step(1, Changed{Bucket: Bundles, Key: "bundle", Record: BundleRecord{s}, Revision: 7})
		if !reflect.DeepEqual(out, []Effect{Bundled{s}}) {
			t.Errorf("shown is %+v", out)
		}
	}
	if out := c.Step(1, Changed{Bucket: Bundles, Key: "bundle", Revision: 8}); len(out) != 0 {
		t.Errorf("one that is gone: %+v", out)
	}
}

// A node says with its heartbeats which bundle it follows, from the next one on, and after a restart of the core too.
func TestAHeartbeatSaysWhichBundleIsFollowed(t *testing.T) {
	c := NewCore()
	if out := c.Step(0, Follows{5}); len(out) != 0 {
		t.Errorf("before the node is announced: %+v", out)
	}
	beat := func(out []Effect) NodeRecord {
		t.Helper()
		w, ok := out[len(out)-1].(Write)
		if !ok {
			t.Fatalf("no heartbeat in %+v", out)
		}
		return w.Record.(NodeRecord)
	}
	first := beat(c.Step(0, Announce{Record: NodeRecord{Home: 2, Epoch: 1, Trust: 5}, Every: time.Second}))
	if out := c.Step(1, Follows{6}); len(out) != 0 {
		t.Errorf("a word of its own: %+v", out)
	}
	if second := beat(c.Step(2, Beat{})); first.Trust != 5 || second.Trust != 6 || second.Beats != first.Beats+1 {
		t.Errorf("heartbeats %+v, %+v", first, second)
	}
}
