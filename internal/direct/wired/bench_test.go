package wired

import (
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/lend"
)

// The benchmarks are between two processes, each beside what the same bytes take over the socket alone.

// The sizes of a call and its answer as they go over the socket.
const (
	callBytes   = 80
	answerBytes = 30
)

func init() {
	roles["floor"] = func(e *os.File) { // answers each so many bytes
		c := bare(e)
		b, answer := make([]byte, callBytes), make([]byte, answerBytes)
		for {
			if _, err := io.ReadFull(c, b); err != nil {
				return
			}
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	}
	roles["flow"] = func(e *os.File) { // answers so many bytes for all that have come
		c := bare(e)
		b, left := make([]byte, 64<<10), 0
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			left += n
			for ; left >= callBytes; left -= callBytes {
				if b[0] == 1 { // the last
					_, _ = c.Write(b[:1])
				}
			}
		}
	}
}

func bare(e *os.File) net.Conn {
	c, err := net.FileConn(e)
	if err != nil {
		panic(err)
	}
	_ = e.Close() // the copy goes on
	return c
}

// spent is the processor time of a process, this one with 0.
func spent(b *testing.B, pid int) time.Duration {
	clock := int32(unix.CLOCK_PROCESS_CPUTIME_ID)
	if pid != 0 {
		clock = int32(^pid<<3 | 2)
	}
	var at unix.Timespec
	if err := unix.ClockGettime(clock, &at); err != nil {
		b.Fatal(err)
	}
	return time.Duration(at.Nano())
}

// measured runs f, and reports the processor time that both processes take for each turn.
func measured(b *testing.B, pid int, f func()) {
	here, there := spent(b, 0), spent(b, pid)
	f()
	b.ReportMetric(float64((spent(b, 0)-here).Nanoseconds())/float64(b.N)/1e3, "caller-cpu-us")
	b.ReportMetric(float64((spent(b, pid)-there).Nanoseconds())/float64(b.N)/1e3, "host-cpu-us")
}

// each measures what f takes each time.
func each(b *testing.B, pid int, f func()) {
	var took []time.Duration
	for range 1000 {
		f()
	}
	measured(b, pid, func() {
		for b.Loop() {
			begun := time.Now()
			f()
			took = append(took, time.Since(begun))
		}
	})
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-us")
}

// BenchmarkAsk is a call and its answer.
func BenchmarkAsk(b *testing.B) {
	b.Run("floor", func(b *testing.B) {
		from, to := made(b)
		pid := child(b, "floor", to).Process.Pid
		c := bare(from)
		call, answer := make([]byte, callBytes), make([]byte, answerBytes)
		each(b, pid, func() {
			if _, err := c.Write(call); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(c, answer); err != nil {
				b.Fatal(err)
			}
		})
		_ = c.Close()
	})
	for name, lender := range map[string]*lend.Lender{"channel": nil, "lent": new(lend.Lender)} {
		b.Run(name, func(b *testing.B) {
			u, pid := withChild(b, lender)
			b.ReportAllocs()
			seq := uint64(0)
			each(b, pid, func() {
				seq++
				a := u.call(1, seq, nil)
				if lender != nil {
					a.read(lender)
				} else {
					<-a.end
				}
				a.Released()
			})
		})
	}
}

// BenchmarkOneWay is calls of which up to 1,000 are under way.
func BenchmarkOneWay(b *testing.B) {
	b.Run("floor", func(b *testing.B) {
		from, to := made(b)
		child(b, "flow", to)
		c := bare(from)
		const most = 64 << 10 / callBytes
		calls := make([]byte, most*callBytes)
		n := 0
		for b.Loop() {
			if n++; n%most == 0 {
				if _, err := c.Write(calls); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "M/s")
		_ = c.Close()
	})
	b.Run("channel", func(b *testing.B) {
		u, pid := withChild(b, nil)
		b.ReportAllocs()
		var open [1000]*asked
		seq := uint64(0)
		measured(b, pid, func() {
			for b.Loop() {
				at := seq % 1000
				if a := open[at]; a != nil {
					<-a.end
					a.Released()
				}
				seq++
				open[at] = u.call(1, seq, nil)
			}
			for _, a := range open {
				if a != nil {
					<-a.end
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "M/s")
	})
}

// withChild is a process that calls an actor of another, which has answered it.
func withChild(b *testing.B, lender *lend.Lender) (*calls, int) {
	u := newCalls(b)
	u.lender = lender
	from, to := made(b)
	u.ways <- from
	pid := child(b, "host", to).Process.Pid
	u.call(2, 1, nil).gives(b, 1)
	b.Cleanup(u.p.Close)
	return u, pid
}
