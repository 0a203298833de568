package shell

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/remote/membership"
)

// processEnv has the test's executable be a node, 9, that joins this address.
const processEnv = "MOBULA_TEST_MEMBER"

// process is a node that writes a heartbeat each second to its output, until its input ends.
func process(join string) {
	sys := actors.NewSystem(actors.Config{})
	m, err := Start(sys, Config{
		Core: membership.DefaultConfig(membership.Node{Life: life(9, 1)}), Cluster: "test", Bind: "127.0.0.1:0", Keys: [][]byte{testKey},
	})
	if err == nil {
		_, err = m.Join(context.Background(), []string{join})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() {
		for beat := 1; ; beat++ {
			fmt.Println(beat)
			time.Sleep(membership.DefaultJudgeConfig().Beat)
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// A process that is stopped for 2 s is given up by nobody and not declared dead. One that stays stopped is declared dead.
func TestAStoppedProcess(t *testing.T) {
	ctx := testkit.Within(t)
	table := newTable(life(1, 1))
	nodes := []*testNode{start(t, life(1, 1)), start(t, life(2, 1)), start(t, life(3, 1))}
	for _, n := range nodes[1:] {
		n.join(ctx, nodes[0])
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), processEnv+"="+nodes[0].Address())
	cmd.Stderr = os.Stderr
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if errIn != nil || errOut != nil {
		t.Fatal(errIn, errOut)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { // its heartbeats
		for lines := bufio.NewScanner(out); lines.Scan(); {
			table.write(membership.Node{Life: life(9, 1)})
		}
	})
	defer func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		running.Wait()
		_ = cmd.Wait()
		table.close()
	}()
	for _, n := range nodes {
		table.join(n)
		n.sees(ctx, append(others(3, n.self.Home), ids.Home(9))...)
	}
	signal := func(s os.Signal) {
		t.Helper()
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	quiet := func(d time.Duration) { // nothing is told of a death for so long
		t.Helper()
		for _, n := range nodes {
			for after := time.After(d); ; {
				if dead := told[membership.NodeDead](n); dead != nil || len(table.verdicts()) > 0 {
					t.Fatalf("node %v was told of the deaths %+v, the verdicts are %v", n.self, dead, table.verdicts())
				}
				select {
				case <-n.changed:
					continue
				case <-after:
				}
				break
			}
			d = 0
		}
	}
	rounds := 1
	if os.Getenv("MOBULA_STRESS") != "" {
		rounds = 20
	}
	for range rounds {
		signal(syscall.SIGSTOP)
		quiet(2 * time.Second)
		signal(syscall.SIGCONT)
		quiet(2 * time.Second)
	}
	signal(syscall.SIGSTOP)
	began := time.Now()
	defer signal(syscall.SIGCONT)
	testkit.Eventually(t, "declared dead", func() bool { return len(table.verdicts()) > 0 })
	t.Logf("declared dead after %v", time.Since(began))
	if v := table.verdicts(); v[0] != 9 {
		t.Errorf("%v is declared dead", v[0])
	}
}

// Over the network it is the same; with 32 nodes where there is time for it.
func TestStressNodesAgreeOnLoopback(t *testing.T) {
	size, kill := 6, []int{4}
	if os.Getenv("MOBULA_STRESS") != "" {
		size, kill = 32, []int{2, 3, 5}
	}
	table := newTable(life(1, 1))
	nodes := make([]*testNode, size)
	for i := range nodes {
		nodes[i] = start(t, life(ids.Home(i+1), 1), func(c *Config) { c.Accuse = table.accuses(c.Core.Self.Home) })
		if i > 0 {
			nodes[i].join(testkit.Within(t), nodes[0])
		}
	}
	defer table.close()
	agree(t, testkit.Patience(), table, nodes, kill...)
}
