package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mobula/internal/node"
	"mobula/internal/testkit"
)

// localPort finds a port of the loopback such that two local nodes have theirs free: four from it on, and four from portsApart before it.
func localPort(t *testing.T) int {
	t.Helper()
	return testkit.Ports(t, portsApart+4) + portsApart
}

// A second cluster in the directory of one that runs is refused, and leaves the first one alone; one that does not come up leaves nothing behind. A node that
// was lost is started again, beside those that run.
func TestAClusterThatRunsIsLeftAlone(t *testing.T) {
	base, err := os.MkdirTemp("", "mobula-local")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) }) // it is only temporary
	local := func(dir string, port int, more ...string) []string {
		return append([]string{"cluster", "local", "--detach", "--json", "--dir", dir, "--port", fmt.Sprint(port), "--store-size", "16MiB"}, more...)
	}
	dir, port := filepath.Join(base, "a"), localPort(t)
	code, out, errOut := process(t, local(dir, port, "-n", "1")...)
	var up localNodes
	if err := json.Unmarshal([]byte(out), &up); code != exitDone || err != nil || len(up.Nodes) != 1 || up.Nodes[0].Node != "n1" {
		t.Fatalf("exit %d, %v, %s%s", code, err, out, errOut)
	}
	defer func() {
		for _, want := range []string{"node n1, process %d, has stopped", "no node of it was running"} {
			if strings.Contains(want, "%d") {
				want = fmt.Sprintf(want, up.Nodes[0].PID)
			}
			if code, out, errOut := process(t, "cluster", "stop", "--dir", dir); code != exitDone || !strings.Contains(out, want) {
				t.Errorf("stop: exit %d, %s%s; want %q", code, out, errOut, want)
			}
		}
		if code, _, _ := process(t, "status", "--address", up.Nodes[0].Address); code != exitNoNode {
			t.Errorf("status of a cluster that was stopped: exit %d", code)
		}
	}()
	code, out, errOut = process(t, local(dir, port, "-n", "1")...)
	if code != exitRunning || out != "" || !strings.Contains(errOut, "mobula cluster stop") || !strings.Contains(errOut, dir+": node n1") {
		t.Errorf("again: exit %d, %s%s", code, out, errOut)
	}
	other := filepath.Join(base, "b")
	code, _, errOut = process(t, local(other, port-portsApart, "-n", "2")...) // the second node has the ports of the first cluster
	if _, err := net.Dial("unix", filepath.Join(other, "n1", node.SocketName)); code == exitDone || err == nil || !strings.Contains(errOut, "node n2") {
		t.Errorf("a cluster whose second node does not start: exit %d, %s; its first one: %v", code, errOut, err)
	}
	if code, out, errOut := process(t, "status", "--address", up.Nodes[0].Address); code != exitDone || !strings.Contains(out, "n1") {
		t.Errorf("the first cluster: exit %d, %s%s", code, out, errOut)
	}

	for round := range 2 { // it is added, and comes back
		code, out, errOut = process(t, local(dir, port, "-n", "2")...)
		if err := json.Unmarshal([]byte(out), &up); code != exitDone || err != nil || len(up.Nodes) != 2 || up.Nodes[1].Node != "n2" {
			t.Fatalf("a second node: exit %d, %v, %s%s", code, err, out, errOut)
		}
		if round > 0 {
			break
		}
		if err := syscall.Kill(up.Nodes[1].PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the node is gone", func() bool {
			names, err := runningIn(t.Context(), dir)
			return err == nil && len(names) == 1
		})
	}
}

// A node that dies as it is asked is started again: whoever has killed it need not wait until its end is complete.
func TestANodeThatDiesAsItIsAskedIsStartedAgain(t *testing.T) {
	dir, err := os.MkdirTemp("", "mobula-local")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // it is only temporary
	if err := os.Mkdir(filepath.Join(dir, "n1"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "n1", node.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer l.Close()
		for range 2 { // whether it runs, and what its status is
			if c, err := l.Accept(); err == nil {
				_ = c.Close() // nothing was sent
			}
		}
	}()
	code, out, errOut := process(t, "cluster", "local", "--detach", "--dir", dir, "--port", fmt.Sprint(localPort(t)), "--store-size", "16MiB", "-n", "1")
	if code != exitDone || !strings.Contains(out, "n1") {
		_ = l.Close() // whoever was to come has not
		t.Errorf("exit %d, %s%s", code, out, errOut)
	}
	<-done
	if code, out, errOut := process(t, "cluster", "stop", "--dir", dir); code != exitDone {
		t.Errorf("stop: exit %d, %s%s", code, out, errOut)
	}
}
