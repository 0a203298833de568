package shell

import (
	"crypto/tls"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"mobula/remote"
)

// BenchmarkPingPong is a message of 100 bytes and its answer, over loopback with TLS; floor is the same by crypto/tls alone. It reports the median.
func BenchmarkPingPong(b *testing.B) {
	payload := make([]byte, 100)
	b.Run("floor", func(b *testing.B) {
		one, other := rawTLS(b)
		go func() {
			buf := make([]byte, len(payload))
			for {
				if _, err := io.ReadFull(other, buf); err != nil {
					return
				}
				if _, err := other.Write(buf); err != nil {
					return
				}
			}
		}()
		buf := make([]byte, len(payload))
		median(b, func() {
			if _, err := one.Write(payload); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(one, buf); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("hub", func(b *testing.B) {
		nw := newTCPNetwork()
		back := make(chan struct{}, 1)
		one := start(b, nw, 1, 1, func(c *Config) { c.Deliver = func(remote.Life, []byte) { back <- struct{}{} } })
		var other *node
		other = start(b, nw, 2, 1, func(c *Config) {
			c.Deliver = func(from remote.Life, got []byte) {
				if err := other.TrySend(remote.Life{Home: from.Home}, slices.Clone(got)); err != nil {
					b.Error(err)
				}
			}
		})
		median(b, func() {
			if err := one.Send(b.Context(), remote.Life{Home: 2}, slices.Clone(payload)); err != nil {
				b.Fatal(err)
			}
			<-back
		})
	})
}

// median runs f and reports the median of its times.
func median(b *testing.B, f func()) {
	for range 100 {
		f()
	}
	b.ReportAllocs()
	b.ResetTimer()
	times := make([]time.Duration, 0, 1<<16)
	for b.Loop() {
		begin := time.Now()
		f()
		if len(times) < cap(times) {
			times = append(times, time.Since(begin))
		}
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/1e3, "us-p50")
	b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds())/1e3, "us-p99")
}

// BenchmarkStream is messages one way, over loopback with TLS; floor is as many bytes in writes of 16 KiB by crypto/tls alone.
func BenchmarkStream(b *testing.B) {
	for _, size := range []int{100, 1000, 100_000} {
		b.Run(fmt.Sprintf("%d/floor", size), func(b *testing.B) {
			one, other := rawTLS(b)
			const piece = 16 << 10
			total := b.N * size
			go func() {
				buf := make([]byte, piece)
				for left := total; left > 0; left -= piece {
					if _, err := one.Write(buf[:min(piece, left)]); err != nil {
						return
					}
				}
			}()
			b.SetBytes(int64(size))
			b.ResetTimer()
			if _, err := io.CopyN(io.Discard, other, int64(total)); err != nil {
				b.Fatal(err)
			}
		})
		b.Run(fmt.Sprintf("%d/hub", size), func(b *testing.B) {
			nw := newTCPNetwork()
			left, done := b.N, make(chan struct{})
			one := start(b, nw, 1, 1)
			start(b, nw, 2, 1, func(c *Config) {
				c.Deliver = func(remote.Life, []byte) {
					if left--; left == 0 {
						close(done)
					}
				}
			})
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if err := one.Send(b.Context(), remote.Life{Home: 2}, make([]byte, size)); err != nil {
					b.Fatal(err)
				}
			}
			<-done
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

// rawTLS is a connection of crypto/tls over loopback.
func rawTLS(b *testing.B) (one, other *tls.Conn) {
	b.Helper()
	server, client := configs(1)
	l, err := tls.Listen("tcp", "127.0.0.1:0", config(server, ALPN))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan *tls.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			b.Error(err)
			close(accepted)
			return
		}
		accepted <- c.(*tls.Conn)
		_ = c.(*tls.Conn).Handshake()
	}()
	if one, err = tls.Dial("tcp", l.Addr().String(), config(client, ALPN)); err != nil {
		b.Fatal(err)
	}
	other = <-accepted
	b.Cleanup(func() { one.Close(); other.Close() })
	return one, other
}
