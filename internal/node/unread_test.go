package node

import (
	"bytes"
	"encoding/binary"
	"os"
	"runtime"
	"testing"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/wire"
	"mobula/wire/conn"
)

// heap is what the process has in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what pools keep goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// A driver that was stopped, and has asked for far more values than the budget holds, costs no more than the budget meanwhile. When it goes on it
// gets them all.
func TestAStoppedClientStaysWithinTheBudget(t *testing.T) {
	const store, each, puts = 64 << 20, 90_000, 1500 // 135 MB of values, most of which lie in the store or its spill files
	n, _ := running(t, Config{StoreBytes: store}, Telemetry{})
	c, w, f, err := conn.Dial(t.Context(), n.Address(), wire.Hello{Role: wire.RoleDriver, PID: int32(os.Getpid())}, conn.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	before := heap()
	for i := range puts {
		data := bytes.Repeat([]byte{byte(i)}, each)
		binary.LittleEndian.PutUint32(data, uint32(i))
		put := w.Root.Put(uint32(i + 1))
		if err := c.Send(&wire.PutValue{ID: put, Value: wire.Value{Data: data}}, &wire.Get{ID: put}); err != nil {
			t.Fatal(err)
		}
	}
	most := before + 2*n.inlineBudget() + 16<<20 // the collector's slack, and what the store keeps of each object
	testkit.Eventually(t, "values are packed", func() bool {
		all, err := n.OwnerStats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var packed, later uint64
		for _, o := range all {
			packed, later = packed+o.Packed, later+o.PutOff
		}
		return later > puts/2 && packed > puts/2 && heap() < most
	})
	got := make(map[uint32]bool)
	for len(got) < puts {
		batch, err := c.Recv()
		if err != nil {
			t.Fatalf("after %d values: %v", len(got), err)
		}
		for _, m := range batch {
			r, ok := m.(*wire.Resolved)
			if !ok {
				continue
			}
			if r.Result.Kind == wire.ResultError {
				t.Fatalf("%v: %v", r.ID, r.Result.Err)
			}
			if r.Result.Kind == wire.ResultInline && (len(r.Result.Value.Data) != each || binary.LittleEndian.Uint32(r.Result.Value.Data)+1 != r.ID.Index&^ids.PutBit) {
				t.Fatalf("%v is answered with %d bytes", r.ID, len(r.Result.Value.Data))
			}
			if got[r.ID.Index&^ids.PutBit] {
				t.Errorf("%v is answered twice", r.ID)
			}
			got[r.ID.Index&^ids.PutBit] = true
		}
	}
}
