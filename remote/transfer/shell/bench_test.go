package shell

import (
	"context"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"mobula/internal/testkit"
	"mobula/remote/transfer"
)

const benchSize = 256 * mib

// BenchmarkTransfer is an object that goes from one node to another, into pages that were used before. In turn as many bytes go on such a connection with nothing
// above it, the floor: "of-floor" is the median of the floor's time by the transfer's, "cpu-of-floor" that of the processor's time, which a busy machine changes less.
func BenchmarkTransfer(b *testing.B) {
	for _, kind := range []string{"tls", "local"} {
		b.Run(kind, func(b *testing.B) {
			net := newNetwork(b, kind)
			all := newNodes(b, net, 2)
			src, dst := pattern(1, benchSize), pattern(2, benchSize)
			all[0].put(object(1), src)
			bare := floor(b, net, src, dst)
			var of, cpu []float64
			b.SetBytes(benchSize)
			for b.Loop() {
				b.StopTimer()
				least := spent(bare)
				b.StartTimer()
				took := spent(func() {
					if err := testkit.Receive(b, "an answer", all[1].get(object(1), dst, 1)); err != nil {
						b.Fatal(err)
					}
				})
				of, cpu = append(of, least.wall/took.wall), append(cpu, least.cpu/took.cpu)
				b.Logf("floor %.3f/%.3f ours %.3f/%.3f s/GiB cpu/wall", least.cpu*4, least.wall*4, took.cpu*4, took.wall*4)
			}
			slices.Sort(of)
			slices.Sort(cpu)
			b.ReportMetric(of[len(of)/2], "of-floor")
			b.ReportMetric(cpu[len(cpu)/2], "cpu-of-floor")
		})
	}
}

// spending is seconds, of the clock and of all processors in this process.
type spending struct{ wall, cpu float64 }

func spent(f func()) spending {
	cpu := func() float64 {
		var r syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // it cannot fail
		return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
	}
	before, began := cpu(), time.Now()
	f()
	return spending{time.Since(began).Seconds(), cpu() - before}
}

// floor makes a connection, and gives what has a stream go over it.
func floor(b *testing.B, n *network, src, dst []byte) func() {
	from, to := n.node(b, 8), n.node(b, 9)
	b.Cleanup(func() { _, _ = from.Close(), to.Close() })
	ask := make(chan struct{})
	b.Cleanup(func() { close(ask) })
	go func() {
		c, err := from.Dial(context.Background(), 9)
		if err != nil {
			b.Error(err)
			return
		}
		defer c.Close()
		for range ask {
			if _, err := c.Write(src); err != nil {
				b.Error(err)
			}
		}
	}()
	c, _, err := to.Accept()
	if err != nil {
		b.Fatal(err)
	}
	return func() {
		ask <- struct{}{}
		if _, err := io.ReadFull(c, dst); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTransferTwo is two objects at once, on as many connections.
func BenchmarkTransferTwo(b *testing.B) {
	for _, conns := range []int{1, 2} {
		b.Run(map[int]string{1: "one-connection", 2: "two-connections"}[conns], func(b *testing.B) {
			all := newNodes(b, newNetwork(b, "tls"), 2, func(c *transfer.Config) { c.Conns = conns })
			var dst [2][]byte
			for i := range dst {
				all[0].put(object(i), pattern(i, benchSize/2))
				dst[i] = pattern(3, benchSize/2)
			}
			b.SetBytes(benchSize)
			for b.Loop() {
				one, two := all[1].get(object(0), dst[0], 1), all[1].get(object(1), dst[1], 1)
				if err := testkit.Receive(b, "an answer", one); err != nil {
					b.Fatal(err)
				}
				if err := testkit.Receive(b, "an answer", two); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBroadcast is an object that goes to six nodes at once.
func BenchmarkBroadcast(b *testing.B) {
	all := newNodes(b, newNetwork(b, "tls"), 7)
	all[0].put(object(1), pattern(1, benchSize))
	var dst [6][]byte
	for i := range dst {
		dst[i] = pattern(2, benchSize)
	}
	b.SetBytes(6 * benchSize)
	for b.Loop() {
		var done [6]<-chan error
		for i := range dst {
			done[i] = all[i+1].get(object(1), dst[i], 1)
		}
		for i := range dst {
			if err := testkit.Receive(b, "an answer", done[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
}
