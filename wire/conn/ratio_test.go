package conn

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

// BenchmarkRoundTripRatio compares the p50 of a round trip between two processes through
// Conn with a bare socket's, in alternating short runs so that both see the same machine.
func BenchmarkRoundTripRatio(b *testing.B) {
	withChild(b, "echo-bare", func(bare *net.UnixConn) {
		withChild(b, "echo-conn", func(uc *net.UnixConn) {
			c, err := overSocket(uc, Config{}, false, false)
			if err != nil {
				b.Fatal(err)
			}
			buf, task := make([]byte, pingSize), ids.RootTask(1, 1)
			var bares, conns, ratios []float64
			for b.Loop() {
				x := p50(b, func() error {
					if _, err := bare.Write(buf); err != nil {
						return err
					}
					_, err := io.ReadFull(bare, buf)
					return err
				})
				y := p50(b, func() error {
					if err := c.Send(&wire.StreamAck{Task: task, Consumed: 7}); err != nil {
						return err
					}
					_, err := c.Recv()
					return err
				})
				bares, conns, ratios = append(bares, x), append(conns, y), append(ratios, y/x)
			}
			b.ReportMetric(slices.Min(bares), "bare-min-ns")
			b.ReportMetric(slices.Min(conns), "conn-min-ns")
			b.ReportMetric(median(ratios), "ratio")
			c.Close()
		})
	})
}

func p50(b *testing.B, once func() error) float64 {
	times := make([]float64, 500)
	for i := range times {
		t := time.Now()
		if err := once(); err != nil {
			b.Fatal(err)
		}
		times[i] = float64(time.Since(t).Nanoseconds())
	}
	return median(times)
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}
