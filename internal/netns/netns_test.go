package netns

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mobula/internal/testkit"
)

// crashEnv makes this process one that makes a network, says its name, and waits to be killed.
const crashEnv = "MOBULA_NETNS_CRASH"

func TestMain(m *testing.M) {
	if os.Getenv(crashEnv) != "" {
		n, err := New(context.Background(), 2)
		if err == nil {
			err = n.Hosts[1].Start(exec.Command("sleep", "1000"))
		}
		fmt.Println(n, err)
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		return
	}
	goleak.VerifyTestMain(m)
}

// network makes one that ends with the test.
func network(t *testing.T, hosts int) *Net {
	t.Helper()
	n, err := New(t.Context(), hosts)
	if errors.Is(err, ErrUnable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(folder + n.name + "*"); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	return n
}

// listen gives an echo server in the host.
func listen(t *testing.T, h *Host) netip.AddrPort {
	t.Helper()
	var l net.Listener
	err := h.Do(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(h.Addr.String(), "0"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() }) // ends the echo
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// dial connects from the host.
func dial(t *testing.T, h *Host, to netip.AddrPort) (net.Conn, error) {
	var c net.Conn
	err := h.Do(func() (err error) {
		c, err = net.DialTimeout("tcp", to.String(), testkit.Patience())
		return err
	})
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

// say sends a word and waits for its echo.
func say(c net.Conn, word string, within time.Duration) error {
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, word); err != nil {
		return err
	}
	return hear(c, word)
}

func hear(c net.Conn, word string) error {
	back := make([]byte, len(word))
	if _, err := io.ReadFull(c, back); err != nil {
		return err
	}
	if string(back) != word {
		return fmt.Errorf("%q came back as %q", word, back)
	}
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// connected has the second host speak with a server in the first.
func connected(t *testing.T, n *Net) (netip.AddrPort, net.Conn) {
	t.Helper()
	server := listen(t, n.Hosts[0])
	c, err := dial(t, n.Hosts[1], server)
	must(t, err)
	must(t, say(c, "hello", testkit.Patience()))
	return server, c
}

func TestHostsSpeakAndCount(t *testing.T) {
	n := network(t, 2)
	if got := n.Hosts[1].Addr.String(); got != "10.77.0.2" {
		t.Errorf("the second host is at %s", got)
	}
	_, c := connected(t, n)
	before, err := n.Hosts[0].Traffic()
	must(t, err)
	const size = 100_000
	must(t, say(c, strings.Repeat("x", size), testkit.Patience()))
	after, err := n.Hosts[0].Traffic()
	must(t, err)
	if d := after.Since(before); d.In < size || d.In > size*11/10 || d.Out < size || d.Out > size*11/10 {
		t.Errorf("an echo of %d bytes counts as %+v", size, d)
	}
	if got := c.LocalAddr().(*net.TCPAddr).AddrPort().Addr(); got != n.Hosts[1].Addr {
		t.Errorf("the connection is from %v", got)
	}
}

// What is sent while the cable is out arrives when it is in again.
func TestACutHostHearsNothing(t *testing.T) {
	n := network(t, 2)
	_, c := connected(t, n)
	for i, h := range n.Hosts { // either side's cable
		must(t, h.Cut(t.Context()))
		word := fmt.Sprintf("word %d", i)
		var late net.Error
		if err := say(c, word, 200*time.Millisecond); !errors.As(err, &late) || !late.Timeout() {
			t.Errorf("a cut connection: %v", err)
		}
		must(t, h.Heal(t.Context()))
		must(t, c.SetDeadline(time.Now().Add(testkit.Patience())))
		must(t, hear(c, word))
	}
}

// Two parted hosts reach the third, and not each other.
func TestPartedHostsReachTheOthers(t *testing.T) {
	n := network(t, 3)
	server, c := connected(t, n)
	must(t, Part(t.Context(), n.Hosts[0], n.Hosts[1]))
	if err := say(c, "lost", 200*time.Millisecond); err == nil {
		t.Error("a word came through")
	}
	if _, err := dial(t, n.Hosts[1], server); err == nil {
		t.Error("a new connection came through")
	}
	other, err := dial(t, n.Hosts[2], server)
	must(t, err)
	must(t, say(other, "hello", testkit.Patience()))
	must(t, Join(t.Context(), n.Hosts[0], n.Hosts[1]))
	must(t, c.SetDeadline(time.Now().Add(testkit.Patience())))
	must(t, hear(c, "lost"))
}

// family starts a process that starts two more, one of them in a session of its own.
func family(t *testing.T, h *Host) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", "sleep 1000 & setsid sleep 1000 & echo up; wait")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, h.Start(cmd))
	t.Cleanup(func() { _ = cmd.Wait() }) // Close, or the test, has killed it
	t.Cleanup(func() { _ = h.Kill(context.WithoutCancel(t.Context())) })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "three processes", func() bool {
		pids, err := h.Processes()
		must(t, err)
		return len(pids) == 3
	})
	return cmd
}

func TestKillEndsAllOfOneHost(t *testing.T) {
	n := network(t, 2)
	family(t, n.Hosts[0])
	cmd := family(t, n.Hosts[1])
	must(t, n.Hosts[1].Kill(t.Context()))
	if left, err := n.Hosts[1].Processes(); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
	var ended *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Errorf("it ended by %v", err)
	}
	if left, err := n.Hosts[0].Processes(); err != nil || len(left) != 3 {
		t.Errorf("of the other host %v are left, %v", left, err)
	}
}

func TestSignalReachesAllOfOneHost(t *testing.T) {
	n := network(t, 1)
	family(t, n.Hosts[0])
	must(t, n.Hosts[0].Signal(unix.SIGSTOP))
	pids, err := n.Hosts[0].Processes()
	must(t, err)
	for _, pid := range pids {
		testkit.Eventually(t, fmt.Sprintf("process %d stopped", pid), func() bool {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			must(t, err)
			_, state, _ := strings.Cut(string(text), ") ")
			return strings.HasPrefix(state, "T")
		})
	}
}

// A network whose process was killed is removed by the next one, with what runs in it; one whose process lives is not.
func TestWhatAKilledProcessLeftIsRemoved(t *testing.T) {
	mine := network(t, 1)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), crashEnv+"=1")
	in, err := cmd.StdinPipe()
	must(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	name, said, _ := strings.Cut(strings.TrimSpace(line), " ")
	if said != "<nil>" {
		t.Fatal(line)
	}
	theirs, err := Open(name)
	must(t, err)
	pids, err := theirs.Hosts[1].Processes()
	if err != nil || len(pids) != 1 {
		t.Fatalf("processes %v, %v", pids, err)
	}
	network(t, 1)
	if _, err := Open(name); err != nil {
		t.Errorf("while its process lives: %v", err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	network(t, 1)
	if left, err := filepath.Glob(folder + theirs.name + "*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := unix.Kill(pids[0], 0); err == nil {
		if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pids[0])); !strings.Contains(string(text), ") Z") {
			t.Errorf("process %d lives on: %s", pids[0], text)
		}
	}
	if _, err := Open(mine.String()); err != nil {
		t.Errorf("ours: %v", err)
	}
}

func TestBadInput(t *testing.T) {
	for _, hosts := range []int{-1, 0, Most + 1} {
		if _, err := New(t.Context(), hosts); err == nil || errors.Is(err, ErrUnable) {
			t.Errorf("%d hosts: %v", hosts, err)
		}
	}
	for _, name := range []string{"", "mobula", "mobula-1-1-1", "mobula-1-1-1/0", "mobula-1-1-1/65", "other-1-1-1/1", "mobula-x-1-1/1", "mobula-1-1-1/1"} {
		if _, err := Open(name); err == nil {
			t.Errorf("%q is a network", name)
		}
	}
	n := network(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.Hosts[0].Cut(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := n.Hosts[0].Do(func() error { return io.ErrShortWrite }); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("what is done in a host fails with %v", err)
	}
	if err := ip(t.Context(), "", "link show no-such-link"); err == nil || !strings.Contains(err.Error(), "no-such-link") {
		t.Errorf("a command that fails: %v", err)
	}
	if _, err := n.Hosts[0].Traffic(); err != nil {
		t.Error(err)
	}
}
