package shell

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mobula/benchmarks/floor"
	"mobula/internal/testkit"
	"mobula/objectstore/spill"
	"mobula/objectstore/spill/format"
)

// segment is shared memory with something in it, as objects lie in.
func segment(b *testing.B, bytes int) []byte {
	fd, err := unix.MemfdCreate("bench", unix.MFD_CLOEXEC)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, int64(bytes)); err != nil {
		b.Fatal(err)
	}
	m, err := unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = unix.Munmap(m) })
	for i := range 4093 {
		m[i] = byte(i * 31)
	}
	for n := 4093; n < len(m); n *= 2 {
		copy(m[n:], m[:n])
	}
	return m
}

// BenchmarkAgainstFloor spills and restores the same bytes as a bare program writes and reads, with the same file
// sizes and mode of I/O, in turn; the ratios are of the medians. The target is 0.8.
func BenchmarkAgainstFloor(b *testing.B) {
	const total = 512 << 20
	seg := segment(b, total)
	for _, mode := range []string{"direct", "buffered"} {
		for _, size := range []int{100_000, 1 << 20, 64 << 20} {
			b.Run(fmt.Sprintf("%s/%dKB", mode, size/1000), func(b *testing.B) {
				dir := diskDir(b)
				url := "file://" + dir + "?direct=" + fmt.Sprint(mode == "direct")
				s := open(b, func(c *Config) { c.URLs, c.MinFileBytes = []string{url}, 100<<20 })
				var all []spill.Item
				step := int(format.Align(uint64(size), format.Page)) // as a segment aligns large objects
				for at := 0; at+size <= total; at += step {
					all = append(all, spill.Item{ID: object(uint64(at)), Data: seg[at : at+size]})
				}
				bytes := int64(len(all) * size)
				files := spill.Fuse(all, 100<<20, 2000)
				base := floor.Disk{
					Dir: dir, Bytes: bytes &^ 4095, FileBytes: bytes / int64(len(files)) &^ 4095, Direct: mode == "direct",
					Drop: mode == "buffered", Cold: true, Repeats: 1,
				}
				var fw, fr, sw, sr []float64
				one := func(out *[]float64, f func(context.Context, floor.Disk) ([]float64, error)) {
					x, err := f(context.Background(), base)
					if err != nil {
						b.Fatal(err)
					}
					*out = append(*out, x...)
				}
				rate := func(out *[]float64, f func()) {
					begun := time.Now()
					f()
					*out = append(*out, float64(bytes)/floor.GiB/time.Since(begun).Seconds())
				}
				for b.Loop() {
					var locs []spill.Location
					one(&fw, floor.DiskWrite)
					rate(&sw, func() { locs = mustWrite(b, s, all) })
					one(&fr, floor.DiskRead)
					for i := range spillFiles(b, dir) {
						if err := floor.Evict(spillFiles(b, dir)[i]); err != nil {
							b.Fatal(err)
						}
					}
					rate(&sr, func() {
						var wg sync.WaitGroup
						wg.Add(len(locs))
						for i, l := range locs {
							s.Read(l, all[i].Data, func(err error) {
								if err != nil {
									b.Error(err)
								}
								wg.Done()
							})
						}
						wg.Wait()
					})
					s.Remove(locs)
					testkit.Eventually(b, "files are deleted", func() bool { return len(spillFiles(b, dir)) == 0 })
				}
				median := func(x []float64) float64 { return floor.Quantile(x, 0.5) }
				b.ReportMetric(median(sw), "write-GiB/s")
				b.ReportMetric(median(sr), "read-GiB/s")
				b.ReportMetric(median(sw)/median(fw), "write/floor")
				b.ReportMetric(median(sr)/median(fr), "read/floor")
			})
		}
	}
}
