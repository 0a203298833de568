package node

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mobula/internal/client"
	"mobula/internal/state"
	"mobula/internal/testkit"
)

// A get of an object in the store, over the socket: what a first get in another process costs beside
// the switches between processes. Between two gets the pin falls, and everything becomes idle.
func BenchmarkGetOfAStoredObject(b *testing.B) {
	log := slog.New(slog.DiscardHandler)
	n, err := Start(b.Context(), Config{Dir: filepath.Join(b.TempDir(), "n"), NoGCS: true, StoreBytes: 64 << 20, Logger: log})
	if err != nil {
		b.Fatal(err)
	}
	d, err := Dial(b.Context(), n.Address(), DialConfig{Logger: log})
	if err != nil {
		b.Fatal(err)
	}
	h := sealed(b, d.Client)
	took := make([]time.Duration, 0, b.N)
	for range b.N {
		begun := time.Now()
		got, err := d.Get1(b.Context(), h)
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
		got.Release()
		d.Flush()
		if _, err := d.Request(b.Context(), state.MethodPing, nil); err != nil { // what was sent before has arrived
			b.Fatal(err)
		}
		time.Sleep(100 * time.Microsecond) // not to wait for something: threads are to park
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/10])/1e3, "us-p10")
	b.ReportMetric(float64(took[len(took)/2])/1e3, "us-p50")
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
	defer cancel()
	_, _ = d.Close(ctx), n.Close(ctx) // the measure is taken
}

func sealed(b *testing.B, c *client.Client) *client.Handle {
	b.Helper()
	buf, err := c.Create(b.Context(), c.Root().NextPut(), 1<<20)
	if err != nil {
		b.Fatal(err)
	}
	h, err := buf.Seal(nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	return h
}
