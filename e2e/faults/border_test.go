package faults

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"mobula"
	"mobula/e2e/harness"
)

// borderMark is what large values of these tests consist of.
const (
	borderMark = 0x1.23456789abcdep+77
	borderLen  = 1 << 15
)

// borderKeeper is one job's; others call it.
type borderKeeper struct{}

var (
	borderType  = mobula.RegisterActor0("e2e/border", func(context.Context) (*borderKeeper, error) { return &borderKeeper{}, nil })
	borderMake  = mobula.RegisterMethod1(borderType, "Make", (*borderKeeper).Make)
	borderLeast = mobula.RegisterMethod1(borderType, "Least", (*borderKeeper).Least)
	borderPID   = mobula.RegisterMethod1(borderType, "PID", (*borderKeeper).PID)
	borderHack  = mobula.Register1("e2e/borderHack", overwrite)
	borderOpen  = mobula.Register1("e2e/borderOpen", func(context.Context, int) ([]string, error) { return segmentsOf("self") })
)

func (*borderKeeper) Make(_ context.Context, n int) ([]float64, error) {
	return slices.Repeat([]float64{borderMark}, n), nil
}

func (*borderKeeper) Least(_ context.Context, v []float64) (float64, error) {
	return slices.Min(v), nil
}

func (*borderKeeper) PID(context.Context, int) (int, error) { return os.Getpid(), nil }

// segmentsOf lists the files of the store that a process has open.
func segmentsOf(pid string) (out []string, err error) {
	dir := filepath.Join("/proc", pid, "fd")
	fds, err := os.ReadDir(dir)
	for _, fd := range fds {
		if to, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && strings.Contains(to, ".job") {
			out = append(out, to)
		}
	}
	return out, err
}

// overwrite writes zeros over every mark that this process can reach: in what it was given, by making that writable, and in every file
// that it has a descriptor of, by opening that again and mapping it. It gives the number of files that had any.
func overwrite(_ context.Context, v []float64) (hits int, err error) {
	page := uintptr(os.Getpagesize())
	at := unsafe.Pointer(unsafe.SliceData(v))
	lead := uintptr(at) % page
	if err := unix.Mprotect(unsafe.Slice((*byte)(unsafe.Add(at, -int(lead))), uintptr(len(v))*8+lead), unix.PROT_READ|unix.PROT_WRITE); err == nil {
		clear(v)
		hits++
	}
	fds, err := os.ReadDir("/proc/self/fd")
	for _, fd := range fds {
		n, err := wipe(filepath.Join("/proc/self/fd", fd.Name()))
		if err == nil && n > 0 {
			hits++
		}
	}
	return hits, err
}

// wipe clears every page of a file that begins with a mark, through a mapping, and counts them.
func wipe(path string) (n int, err error) {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return 0, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	for _, off := range marks(f) {
		m, err := unix.Mmap(int(f.Fd()), off, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return n, err
		}
		clear(m)
		n++
		if err := unix.Munmap(m); err != nil {
			return n, err
		}
	}
	return n, nil
}

// marks lists the pages of a file that begin with marks; holes are not touched.
func marks(f *os.File) (out []int64) {
	mark := bytes.Repeat(binary.LittleEndian.AppendUint64(nil, math.Float64bits(borderMark)), 8)
	b := make([]byte, len(mark))
	page := int64(os.Getpagesize())
	for at := int64(0); ; {
		from, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if err != nil {
			return out
		}
		if at, err = unix.Seek(int(f.Fd()), from, unix.SEEK_HOLE); err != nil {
			return out
		}
		for off := from &^ (page - 1); off < at; off += page {
			if n, _ := f.ReadAt(b, off); n == len(b) && bytes.Equal(b, mark) {
				out = append(out, off)
			}
		}
	}
}

// keeper makes a job's actor and gives another job's handle of it, and what it made for that.
func keeper(t *testing.T, owner, other context.Context, opts ...mobula.ActorOption) (mobula.ActorRef[borderKeeper], mobula.Ref[[]float64]) {
	t.Helper()
	a, err := borderType.Spawn(owner, append(opts, mobula.Named("e2e", "keeper"))...)
	harness.Must(t, err)
	t.Cleanup(func() { _ = a.Kill(owner) })
	theirs, err := mobula.GetActor[borderKeeper](other, "e2e", "keeper")
	harness.Must(t, err)
	return theirs, borderMake.Go(other, theirs, mobula.V(borderLen))
}

// What one job's processes made another's read by reference, and whatever they write, it stays as it is.
func TestAnotherJobReadsAndCannotWrite(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 4, Store: 16 << 20, StoreDir: harness.TempDir(t)})
	_, owner := harness.Connect(t, ctx, p)
	_, other := harness.Connect(t, ctx, p)
	a, made := keeper(t, owner, other)
	if v, err := made.Get(other); err != nil || len(v) != borderLen || slices.Min(v) != borderMark {
		t.Fatalf("another job's driver reads %d, %v", len(v), err)
	}
	if hits, err := borderHack.Go(other, made).Get(other); err != nil || hits == 0 {
		t.Fatalf("the worker reached %d copies of its own, %v: the test writes nothing", hits, err)
	}
	if m, err := borderLeast.Go(other, a, made).Get(other); err != nil || m != borderMark {
		t.Errorf("the job that made it reads %v, %v", m, err)
	}
	ours, err := borderOpen.Go(owner, mobula.V(0)).Get(owner)
	harness.Must(t, err)
	theirs, err := borderOpen.Go(other, mobula.V(0)).Get(other)
	harness.Must(t, err)
	if len(ours) == 0 || len(theirs) == 0 {
		t.Fatalf("open files of the store: %v and %v", ours, theirs)
	}
	for _, f := range ours {
		if slices.Contains(theirs, f) {
			t.Errorf("both jobs' workers have %s", f)
		}
	}
}

// Within a job processes trust one another.
func TestWithinAJobProcessesShareOneFile(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 4, Store: 16 << 20, StoreDir: harness.TempDir(t)})
	_, job := harness.Connect(t, ctx, p)
	a, made := keeper(t, job, job)
	if hits, err := borderHack.Go(job, made).Get(job); err != nil || hits == 0 {
		t.Fatalf("reached %d, %v", hits, err)
	}
	if m, err := borderLeast.Go(job, a, made).Get(job); err != nil || m == borderMark {
		t.Errorf("the value is %v still, %v: docs/guide/security.md says otherwise", m, err)
	}
}

// A node that is killed finds each job's file again, and who reads which.
func TestEachJobsFileIsFoundAgain(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 4, Store: 16 << 20, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	_, owner := harness.Connect(t, ctx, p)
	_, other := harness.Connect(t, ctx, p)
	a, made := keeper(t, owner, other, mobula.Detached(), mobula.MaxRestarts(-1), mobula.MaxTaskRetries(-1))
	view, err := made.View(other) // of a copy, which lies in the other job's file
	harness.Must(t, err)
	mine, err := mobula.Put(owner, slices.Repeat([]float64{borderMark}, borderLen))
	harness.Must(t, err)
	for range 2 {
		p.Kill(t)
		p = harness.MustLaunch(t, cfg)
		for range 4 { // new values in the other job's file
			_, err := mobula.Put(other, make([]float64, borderLen))
			harness.Must(t, err)
		}
		if v, err := mine.Get(owner); err != nil || slices.Min(v) != borderMark {
			t.Errorf("the owner's own: %v", err)
		}
		if m, err := borderLeast.Go(other, a, made).Get(other); err != nil || m != borderMark {
			t.Errorf("what the detached actor made: %v, %v", m, err)
		}
		if v, err := view.Value(); err != nil || slices.Min(v) != borderMark {
			t.Errorf("a view from before: %v", err)
		}
	}
	harness.Must(t, view.Close())
	if hits, err := borderHack.Go(other, made).Get(other); err != nil || hits == 0 {
		t.Errorf("a worker of the other job reached %d: %v", hits, err)
	}
	if m, err := borderLeast.Go(other, a, made).Get(other); err != nil || m != borderMark {
		t.Errorf("after it wrote: %v, %v", m, err)
	}
}

// Another user can open none of it.
func TestAnotherUserCanOpenNothing(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	shared := sharedDir(t)
	p := harness.MustLaunch(t, harness.NodeConfig{Dir: filepath.Join(shared, "node"), CPUs: 2, Store: 16 << 20, StoreDir: shared})
	_, job := harness.Connect(t, ctx, p)
	a, made := keeper(t, job, job)
	_, err := made.Get(job)
	harness.Must(t, err)
	pid, err := borderPID.Go(job, a, mobula.V(0)).Get(job)
	harness.Must(t, err)
	var files []string
	for _, f := range harness.FilesOf(shared) {
		if strings.Contains(f, ".job") || strings.HasSuffix(f, ".index") {
			files = append(files, f)
		}
	}
	if len(files) < 2 {
		t.Fatalf("the store's files: %v", files)
	}
	files = append(files, fmt.Sprintf("/proc/%d/mem", pid), fmt.Sprintf("/proc/%d/fd/0", pid))
	for _, f := range files {
		for _, how := range []string{"<", ">>"} {
			cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `exec 3`+how+`"$0"`, f)
			cmd.Dir = "/"
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "ermission denied") {
				t.Errorf("another user opens %s with %s: %v, %s", f, how, err, out)
			}
		}
	}
}

// What code of the same user can do all the same; docs/guide/security.md lists it.
func TestCodeOfTheSameUserCan(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	storeDir := harness.TempDir(t)
	p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 4, Store: 16 << 20, StoreDir: storeDir})
	_, owner := harness.Connect(t, ctx, p)
	_, other := harness.Connect(t, ctx, p)
	a, _ := keeper(t, owner, other) // a driver that joins finds it by its name, and may call it
	pid, err := borderPID.Go(other, a, mobula.V(0)).Get(other)
	harness.Must(t, err)
	changed := func(t *testing.T, write func() (int, error)) {
		t.Helper()
		made := borderMake.Go(other, a, mobula.V(borderLen))
		if m, err := borderLeast.Go(other, a, made).Get(other); err != nil || m != borderMark {
			t.Fatalf("made: %v, %v", m, err)
		}
		if n, err := write(); err != nil || n == 0 {
			t.Fatalf("%d pages written: %v", n, err)
		}
		if m, err := borderLeast.Go(other, a, made).Get(other); err != nil || m == borderMark {
			t.Errorf("the value is %v still, %v: docs/guide/security.md says otherwise", m, err)
		}
	}
	all := func(paths []string) (n int, err error) {
		for _, f := range paths {
			k, err := wipe(f)
			if n += k; err != nil {
				return n, err
			}
		}
		return n, nil
	}
	t.Run("open the file of another job by its name", func(t *testing.T) {
		changed(t, func() (int, error) {
			files, err := filepath.Glob(filepath.Join(storeDir, "*.job*"))
			harness.Must(t, err)
			return all(files)
		})
	})
	t.Run("open it by the descriptor of a process that has it", func(t *testing.T) {
		changed(t, func() (n int, err error) {
			dir := fmt.Sprintf("/proc/%d/fd", pid)
			fds, err := os.ReadDir(dir)
			harness.Must(t, err)
			for _, fd := range fds {
				if to, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && strings.Contains(to, ".job") {
					k, err := wipe(filepath.Join(dir, fd.Name()))
					harness.Must(t, err)
					n += k
				}
			}
			return n, nil
		})
	})
	t.Run("write the memory of a process", func(t *testing.T) {
		changed(t, func() (n int, err error) { return writeMemory(pid) })
	})
	t.Run("end a process", func(t *testing.T) {
		harness.Must(t, syscall.Kill(pid, syscall.SIGKILL))
	})
}

// writeMemory clears the marks that a process has mapped writable.
func writeMemory(pid int) (n int, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, err
	}
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = mem.Close() }()
	for line := range strings.Lines(string(maps)) {
		fs := strings.Fields(line)
		if len(fs) < 6 || fs[1] != "rw-s" || !strings.Contains(fs[5], ".job") {
			continue
		}
		var from, to, off int64
		if _, err := fmt.Sscanf(fs[0]+" "+fs[2], "%x-%x %x", &from, &to, &off); err != nil {
			return n, err
		}
		f, err := os.Open(fs[5])
		if err != nil {
			return n, err
		}
		for _, at := range marks(f) {
			if at < off || at-off >= to-from {
				continue
			}
			if _, err := mem.WriteAt(make([]byte, os.Getpagesize()), from+at-off); err != nil {
				return n, err
			}
			n++
		}
		if err := f.Close(); err != nil {
			return n, err
		}
	}
	return n, nil
}
