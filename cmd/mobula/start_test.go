package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"mobula/internal/state"
	"mobula/internal/testkit"
	"mobula/internal/trust"
)

// process runs the command in a process of its own.
func process(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	ctx := testkit.Within(t)
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), childEnv+"=1", "MOBULA_CONFIG=/dev/null")
	var o, e strings.Builder
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// A node in the background: it starts, answers, keeps a second one out, and stops for good.
func TestANodeInTheBackground(t *testing.T) {
	base, err := os.MkdirTemp("", "mobula-start")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) }) // it is only temporary
	dir := filepath.Join(base, "n")
	settings := []string{"--dir", dir, "--store-size", "16MiB", "--store-dir", base, "--name", "n1", "--metrics-address", "127.0.0.1:0", "--cpus", "2"}
	code, out, errOut := process(t, append([]string{"start", "--detach", "--json"}, settings...)...)
	var s started
	if err := json.Unmarshal([]byte(out), &s); code != exitDone || err != nil || s.Node != "n1" || s.Address != filepath.Join(dir, "node.sock") || s.Metrics == "" {
		t.Fatalf("exit %d, %v, %s%s", code, err, out, errOut)
	}
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			_ = syscall.Kill(s.PID, syscall.SIGKILL) // the test failed before it was asked to stop
		}
	})
	for _, detach := range []string{"--detach=true", "--detach=false"} {
		code, out, errOut = process(t, append([]string{"start", detach}, settings...)...)
		if code != exitRunning || out != "" || !strings.Contains(errOut, dir) || !strings.Contains(errOut, "mobula stop") {
			t.Errorf("a second node in one directory: exit %d, %s%s", code, out, errOut)
		}
	}
	code, out, errOut = command(t, nil, "status", "--json", "--address", dir)
	var st state.Status
	if err := json.Unmarshal([]byte(out), &st); code != exitDone || err != nil || st.PID != s.PID || st.Store.Limit != 16<<20 || st.Resources["CPU"].Total != 2 {
		t.Errorf("exit %d, %v, %s%s", code, err, out, errOut)
	}
	if code, out, errOut = command(t, nil, "list", "components", "--address", s.Address); code != exitDone || !strings.Contains(out, "root/raylet/scheduler") {
		t.Errorf("exit %d, %s%s", code, out, errOut)
	}
	code, out, errOut = command(t, []string{"MOBULA_DIR=" + dir}, "stop")
	if stopped = code == exitDone; !stopped || !strings.Contains(out, "node n1") {
		t.Errorf("exit %d, %s%s", code, out, errOut)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := awaitEnd(over, s.PID, false); err != nil {
		t.Errorf("after stop: %v", err)
	}
	if code, _, _ = command(t, nil, "stop", "--address", dir); code != exitNoNode {
		t.Errorf("stopping it again: exit %d", code)
	}
	log, err := os.ReadFile(filepath.Join(dir, "logs", "node.log"))
	if err != nil || !strings.Contains(string(log), "node has stopped") {
		t.Errorf("the log: %v, %s", err, log)
	}
}

// If a background node cannot start, the reason is on the terminal, with its exit code.
func TestANodeThatCannotStart(t *testing.T) {
	base := t.TempDir()
	if err := os.WriteFile(filepath.Join(base, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }() // nobody came
	for _, c := range []struct {
		args string
		code int
		say  string
	}{
		{"--store-size 100EB", exitUsage, "--store-size"},
		{"--store-size 16MiB --store-dir " + base + " --dir " + base + "/m --metrics-address " + taken.Addr().String(), exitFailed,
			"listen tcp " + taken.Addr().String() + ": bind: address already in use; give another address (metrics.address, --metrics-address"},
		{"--store-size 16MiB --store-dir /no/such/dir --dir " + base + "/n", exitFailed, "no such file or directory; give another directory (store.dir, --store-dir"},
		{"--store-size 16MiB --store-dir " + base + " --dir " + base + "/o --store-spill " + base + "/file/s", exitFailed, "give another (WithSpill, store.spill, --store-spill"},
		{"--store-size 16MiB --store-dir " + base + " --dir " + base + "/p --log-file " + base + "/file/x.log", exitUsage, base + "/file/x.log"},
		{"--dir " + base + "/file/n", exitUsage, base + "/file/n"},
	} {
		for _, how := range []string{"--detach=true", "--detach=false"} {
			code, out, errOut := process(t, append([]string{"start", how}, strings.Fields(c.args)...)...)
			if code != c.code || out != "" || !strings.Contains(errOut, c.say) || strings.Contains(errOut, "level=INFO") {
				t.Errorf("start %s %s: exit %d, %s%s; want %d and %s", how, c.args, code, out, errOut, c.code, c.say)
			}
		}
	}
}

// In the foreground an interrupt ends the node in order.
func TestAnInterruptedNodeEnds(t *testing.T) {
	base, err := os.MkdirTemp("", "mobula-start")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) }) // it is only temporary
	cmd := exec.Command("/proc/self/exe", "start", "--dir", filepath.Join(base, "n"), "--store-size", "16MiB", "--store-dir", base)
	cmd.Env = append(os.Environ(), childEnv+"=1", "MOBULA_CONFIG=/dev/null")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 200)
	k, err := out.Read(line)
	if err != nil || !strings.Contains(string(line[:k]), "is up at "+filepath.Join(base, "n", "node.sock")) {
		t.Errorf("it says %q, %v", line[:k], err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// A node of a program's own ends with the program: when its standard input does, or when its parent is gone although
// somebody else holds the pipe.
func TestANodeBoundToItsParentEnds(t *testing.T) {
	for _, how := range []string{"stdin", "parent"} {
		t.Run(how, func(t *testing.T) {
			base, err := os.MkdirTemp("", "mobula-start")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(base) }) // it is only temporary
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			// The shell is the parent; what it starts in the background would have no standard input of its own accord.
			cmd := exec.Command("/bin/sh", "-c", `exec 3<&0; "$0" "$@" <&3 & echo $!; wait`, exe,
				"start", "--until-stdin-closes", "--json", "--dir", filepath.Join(base, "n"), "--store-size", "16MiB", "--store-dir", base)
			cmd.Env = append(os.Environ(), childEnv+"=1", "MOBULA_CONFIG=/dev/null")
			in, err := cmd.StdinPipe() // ours stays open when the shell is killed
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(out)
			first, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(first))
			if err != nil {
				t.Fatal(err)
			}
			if up, err := lines.ReadString('\n'); err != nil || !strings.Contains(up, "address") {
				t.Fatalf("it says %q, %v", up, err)
			}
			if how == "stdin" {
				err = in.Close()
			} else {
				err = cmd.Process.Kill()
			}
			if err != nil {
				t.Error(err)
			}
			ctx := testkit.Within(t)
			if err := awaitEnd(ctx, pid, true); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // the shell's end says nothing
		})
	}
}

func TestANodeIsDetachedOrBound(t *testing.T) {
	for _, flag := range []string{"--until-stdin-closes", "--worker-output"} {
		if code, _, errOut := command(t, nil, "start", "--detach", flag); code != exitUsage || !strings.Contains(errOut, "exclude") {
			t.Errorf("exit %d, %s", code, errOut)
		}
	}
}

// A node in the background that does not get into its cluster ends with the exit code and the words that it has in the foreground, and each says what to do.
func TestANodeThatDoesNotGetIn(t *testing.T) {
	base, err := os.MkdirTemp("", "mobula-start")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) }) // it is only temporary
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := nobody.Addr().String()
	_ = nobody.Close() // nobody came
	token := trust.NewToken([32]byte{1}, "id", [32]byte{2}).Text()
	for _, c := range []struct {
		args string
		code int
		say  string
	}{
		{"--join " + address, exitUsage, "mobula token create"},
		{"--join " + address + " --token x", exitUsage, "it should read mbl1.AUTHORITY.ID.SECRET"},
		{"--token " + token, exitUsage, "say --join HOST:PORT"},
		{"--join " + address + " --token " + token, exitNoNode, address + ": connect: connection refused"},
	} {
		for _, how := range []string{"--detach=true", "--detach=false"} {
			args := "start " + how + " --role driver --listen 127.0.0.1 --dir " + base + "/n --store-size 16MiB --store-dir " + base + " " + c.args
			code, out, errOut := process(t, strings.Fields(args)...)
			if code != c.code || out != "" || !strings.Contains(errOut, c.say) || strings.Contains(errOut, "exit status") || strings.Contains(errOut, "process could not be started") {
				t.Errorf("%s: exit %d, %s%s; want %d and %s", args, code, out, errOut, c.code, c.say)
			}
		}
	}
}

// What start says of a node of a cluster: only a control-plane server makes tokens.
func TestANodeOfAClusterSaysItsRole(t *testing.T) {
	for role, says := range map[string]string{"control-plane": "mobula token create lets one join", "data": "its role in the cluster is data", "driver": "its role in the cluster is driver"} {
		var b strings.Builder
		started{Node: "n", Address: "/a", Cluster: "10.0.0.1:7710", Role: role}.text(&b)
		if out := b.String(); !strings.Contains(out, "10.0.0.1:7710; "+says) {
			t.Errorf("%s: %s", role, out)
		}
	}
}
