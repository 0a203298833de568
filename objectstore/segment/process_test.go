package segment

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/wire"
)

// Other processes are this test binary, started again with a role.
const roleEnv = "SEGMENT_TEST_ROLE"

const shared = 256 * mib

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "":
		os.Exit(m.Run())
	case "reader":
		exit(reader())
	case "writer":
		exit(viewWriter())
	case "tmpfs":
		exit(smallTmpfs())
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(t *testing.T, role string, s *Segment) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	if s != nil {
		cmd.ExtraFiles = []*os.File{s.File()}
	}
	return cmd
}

func received() (*Mapping, error) { return OpenMapping(os.NewFile(3, "segment"), shared) }

// reader sums the segment and says how much memory that cost it.
func reader() error {
	m, err := received()
	if err != nil {
		return err
	}
	b, err := m.Map(wire.Extent{Size: shared}, false)
	if err != nil {
		return err
	}
	sum := 0
	for i := 0; i < len(b); i += 512 {
		sum += int(b[i])
	}
	fmt.Println("sum", sum)
	smaps, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		return err
	}
	for _, f := range []string{"Private_Clean:", "Private_Dirty:", "Pss_Shmem:", "Pss:"} {
		n, _ := field(smaps, f)
		fmt.Println(f, n<<10)
	}
	fmt.Println("done")
	_, _ = os.Stdin.Read(make([]byte, 1)) // stay until the others have counted too
	return nil
}

// field is the number that follows a name at the start of a line.
func field(text []byte, name string) (uint64, bool) {
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			n, err := strconv.ParseUint(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

func viewWriter() error {
	m, err := received()
	if err != nil {
		return err
	}
	b, err := m.Map(wire.Extent{Size: 4096}, false)
	if err != nil {
		return err
	}
	fmt.Println("read", b[0])
	b[0] = 99
	return errors.New("a write through a view went through")
}

func TestReadersShareOneCopy(t *testing.T) {
	s := open(t, Config{Size: shared})
	if err := s.Reserve([]Range{{0, shared}}); err != nil {
		t.Fatal(err)
	}
	m := mapping(t, s)
	b := view(t, m, 0, shared, true)
	want := 0
	for i := range b {
		b[i] = byte(i >> 3)
	}
	for i := 0; i < len(b); i += 512 {
		want += int(b[i])
	}
	const readers = 4
	var outs [readers]bytes.Buffer
	for i := range readers { // one after the other: each maps while those before it still do
		cmd := child(t, "reader", s)
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = stdin.Close()
			_ = cmd.Wait()
		})
		buf := make([]byte, 4096)
		for !strings.Contains(outs[i].String(), "done") {
			n, err := stdout.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			outs[i].Write(buf[:n])
		}
		out := outs[i].Bytes()
		sum, _ := field(out, "sum")
		clean, _ := field(out, "Private_Clean:")
		dirty, _ := field(out, "Private_Dirty:")
		if int(sum) != want {
			t.Errorf("reader %d summed %d, want %d", i, sum, want)
		}
		if clean+dirty > 10*mib+4*mib { // the process itself takes a few
			t.Errorf("reader %d has %d bytes of its own for %d shared", i, clean+dirty, shared)
		}
		if pss, _ := field(out, "Pss_Shmem:"); pss == 0 || pss > shared/2+mib {
			t.Errorf("reader %d is charged %d of %d bytes that others map too", i, pss, shared)
		}
	}
}

func TestAWriteThroughAViewFaults(t *testing.T) {
	s := open(t, Config{Size: shared})
	if err := s.Reserve([]Range{{0, mib}}); err != nil {
		t.Fatal(err)
	}
	view(t, mapping(t, s), 0, 1, true)[0] = 42
	out, err := child(t, "writer", s).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !bytes.Contains(out, []byte("read 42")) || !bytes.Contains(out, []byte("unexpected fault address")) {
		t.Fatalf("the writer ended with %v:\n%s", err, out)
	}
	if got := view(t, mapping(t, s), 0, 1, false)[0]; got != 42 {
		t.Fatalf("the byte is now %d", got)
	}
}

// smallTmpfs runs in a mount namespace of its own.
func smallTmpfs() error {
	dir, err := os.MkdirTemp("", "segment")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	for _, memory := range []Memory{nil, plenty} { // told by the look ahead, and by fallocate itself
		s, err := Open(Config{Path: filepath.Join(dir, "segment"), Size: 64 * mib, Memory: memory, Margin: mib})
		if err != nil {
			return err
		}
		m, err := OpenMapping(s.File(), s.Size())
		if err != nil {
			return err
		}
		got := uint64(0)
		for err = error(nil); err == nil; got += mib {
			if err = s.Reserve([]Range{{got, mib}}); err != nil {
				break
			}
			b, e := m.Map(wire.Extent{Off: got, Size: mib}, true)
			if e != nil {
				return e
			}
			for i := range b {
				b[i] = 1 // a page that is not there would end this process
			}
		}
		if !errors.Is(err, errs.ErrSegmentUnavailable) || got < 12*mib || got > 16*mib {
			return fmt.Errorf("%d bytes reserved of a tmpfs of 16 MiB, then %w", got, err)
		}
		big := s.Reserve([]Range{{32 * mib, 20 * mib}})
		if !errors.Is(big, errs.ErrSegmentUnavailable) {
			return fmt.Errorf("20 MiB of a full tmpfs: %w", big)
		}
		if n, err := s.Blocks(); err != nil || n > got {
			return fmt.Errorf("a failed reservation kept %d bytes, %w", n-got, err)
		}
		fmt.Println("reserved", got, "then:", err)
		if err := errors.Join(m.Close(), s.Close(true)); err != nil {
			return err
		}
	}
	return nil
}

func TestAFullTmpfsIsAnErrorNotASignal(t *testing.T) {
	cmd := child(t, "tmpfs", nil)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Count(out, []byte(" then: ")) != 2 {
		t.Fatalf("%v:\n%s", err, out)
	}
}

// Floors and puts of 1 GiB: "plain" is what a program does without help.

func benchmarkPut(b *testing.B, warm bool, put func(s *Segment, m *Mapping, src []byte) error) {
	const size = 1 << 30
	src := make([]byte, size)
	for i := range src {
		src[i] = byte(i * 7)
	}
	b.SetBytes(size)
	s := open(b, Config{Size: size})
	m := mapping(b, s)
	if warm {
		if err := put(s, m, src); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if !warm {
			b.StopTimer()
			if err := errors.Join(m.Close(), s.Close(true)); err != nil {
				b.Fatal(err)
			}
			var err error
			if s, err = Open(Config{Size: size}); err != nil {
				b.Fatal(err)
			}
			if m, err = OpenMapping(s.File(), size); err != nil {
				b.Fatal(err)
			}
			runtime.GC()
			b.StartTimer()
		}
		if err := put(s, m, src); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	_ = m.Close()
	m.files = map[uint32]*area{}
}

func plain(threads int) func(*Segment, *Mapping, []byte) error {
	return func(_ *Segment, m *Mapping, src []byte) error {
		dst, err := m.Slice(wire.Extent{Size: uint64(len(src))}, true)
		if err != nil {
			return err
		}
		if threads == 1 {
			copy(dst, src)
		} else {
			Copy(dst, src)
		}
		return nil
	}
}

func reserved(s *Segment, m *Mapping, src []byte) error {
	if err := s.Reserve([]Range{{0, uint64(len(src))}}); err != nil {
		return err
	}
	return m.Write(wire.Extent{Size: uint64(len(src))}, src)
}

func BenchmarkFirstTouchOneThread(b *testing.B)  { benchmarkPut(b, false, plain(1)) }
func BenchmarkFirstTouchTwoThreads(b *testing.B) { benchmarkPut(b, false, plain(2)) }
func BenchmarkFirstPut(b *testing.B)             { benchmarkPut(b, false, reserved) }
func BenchmarkMemcpyOneThread(b *testing.B)      { benchmarkPut(b, true, plain(1)) }
func BenchmarkMemcpyTwoThreads(b *testing.B)     { benchmarkPut(b, true, plain(2)) }
func BenchmarkReusedPut(b *testing.B) {
	benchmarkPut(b, true, func(_ *Segment, m *Mapping, src []byte) error {
		return m.Write(wire.Extent{Size: uint64(len(src))}, src)
	})
}

// coldWrite is a put into an extent without memory; the writer brings it, in two ways.
func coldWrite(_ *Segment, m *Mapping, src []byte) error {
	return m.Write(wire.Extent{Size: uint64(len(src))}, src)
}

func coldMap(_ *Segment, m *Mapping, src []byte) error {
	dst, err := m.Map(wire.Extent{Size: uint64(len(src))}, true)
	if err == nil {
		Copy(dst, src)
	}
	return err
}

func BenchmarkFirstPutCold(b *testing.B)       { benchmarkPut(b, false, coldWrite) }
func BenchmarkFirstPutColdMapped(b *testing.B) { benchmarkPut(b, false, coldMap) }
