package restarts

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/pidfd"
	"mobula/internal/testkit"
)

// leaves is what a task runs that leaves three processes: a child, one with a session of its own, and a daemon, of which no
// ancestor lives.
const leaves = `
sleep 1000 >/dev/null 2>&1 &
echo $!
for daemon in 0 1; do
	at=$(mktemp -u)
	if [ $daemon = 1 ]; then (setsid sh -c "echo \$\$ >$at.new; mv $at.new $at; exec sleep 1000" >/dev/null 2>&1 &)
	else setsid sh -c "echo \$\$ >$at.new; mv $at.new $at; exec sleep 1000" >/dev/null 2>&1 & fi
	until [ -e $at ]; do sleep 0.01; done
	cat $at; rm $at
done`

var (
	family = mobula.Register1("e2e/family", func(ctx context.Context, script string) ([]int, error) {
		out, err := exec.CommandContext(ctx, "sh", "-c", script).Output()
		pids := []int{os.Getpid(), os.Getppid()}
		for s := range strings.FieldsSeq(string(out)) {
			pid, err := strconv.Atoi(s)
			if err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
		return pids, err
	})
	pyFamily = mobula.PythonFunc1[string, []int](harness.PythonHelpers, "family")
)

// families has a task of each language leave processes; it gives their numbers after their worker's.
func families(t *testing.T, ctx context.Context) map[string][]int {
	t.Helper()
	out := make(map[string][]int)
	for language, f := range map[string]mobula.Func1[string, []int]{"Go": family, "Python": pyFamily} {
		pids, err := f.Go(ctx, mobula.V(leaves), mobula.Retries(0)).Get(ctx)
		if err != nil || len(pids) != 5 {
			t.Fatalf("%s: processes %v, %v", language, pids, err)
		}
		pids = append(pids[:1], pids[2:]...)
		t.Cleanup(func() {
			for _, pid := range pids {
				_ = unix.Kill(pid, unix.SIGKILL) // where the test has failed
			}
		})
		for _, pid := range pids {
			if pidfd.Gone(pid) {
				t.Fatalf("%s: process %d of %v is gone already", language, pid, pids)
			}
		}
		out[language] = pids
	}
	return out
}

func wantGone(t *testing.T, what string, pids []int) {
	t.Helper()
	for i, pid := range pids {
		if !pidfd.Await(t.Context(), pid, testkit.Patience()) {
			t.Errorf("%s: process %d, the %d. of worker, child, session and daemon, lives", what, pid, i)
		}
	}
}

// What a task has started ends with the task's worker, with its job, and with its node, however these end.
func TestWhatTasksStartGoesWithThem(t *testing.T) {
	opts := harness.Python(t)
	for name, end := range map[string]func(t *testing.T, ctx context.Context, p *harness.NodeProcess, c *mobula.Cluster, all map[string][]int){
		"node killed": func(t *testing.T, _ context.Context, p *harness.NodeProcess, _ *mobula.Cluster, _ map[string][]int) {
			p.Kill(t)
		},
		"node stopped": func(t *testing.T, _ context.Context, p *harness.NodeProcess, _ *mobula.Cluster, _ map[string][]int) {
			p.Stop(t)
		},
		"job over": func(t *testing.T, ctx context.Context, _ *harness.NodeProcess, c *mobula.Cluster, _ map[string][]int) {
			harness.Must(t, c.Close(context.WithoutCancel(ctx)))
		},
		"workers killed": func(t *testing.T, _ context.Context, _ *harness.NodeProcess, _ *mobula.Cluster, all map[string][]int) {
			for _, pids := range all {
				harness.Must(t, unix.Kill(pids[0], unix.SIGKILL))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := harness.Limit(t)
			defer cancel()
			p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 << 20, StoreDir: harness.TempDir(t)})
			c, err := mobula.Connect(ctx, p.Address, mobula.ConnectLogger(harness.Quiet()), mobula.ConnectPython(opts...))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close(context.WithoutCancel(ctx)) }() // its node may be gone
			all := families(t, c.Context(ctx))
			end(t, ctx, p, c, all)
			for language, pids := range all {
				wantGone(t, language, pids)
			}
		})
	}
}

// Node and guard killed together, the node's next start ends what tasks had started; what the next life's tasks start lives on.
func TestTheNextStartEndsWhatAKilledGuardCouldNot(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 << 20, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	_, of := harness.Connect(t, ctx, p)
	first, err := family.Go(of, mobula.V(leaves)).Get(of)
	if err != nil {
		t.Fatal(err)
	}
	guard := guardOf(t, p.Cmd.Process.Pid)
	harness.Must(t, unix.Kill(guard, unix.SIGSTOP)) // else it is killed first and another one comes
	p.Kill(t)
	harness.Must(t, unix.Kill(guard, unix.SIGKILL))
	if pidfd.Gone(first[4]) {
		t.Fatal("nothing is left to be swept")
	}
	_, of = harness.Connect(t, ctx, harness.MustLaunch(t, cfg))
	wantGone(t, "of the life before", first[2:])
	pids, err := family.Go(of, mobula.V(leaves)).Get(of)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if pidfd.Gone(pid) {
			t.Errorf("process %d of the new life is gone", pid)
		}
	}
}

// guardOf finds the guard of a node.
func guardOf(t *testing.T, node int) int {
	t.Helper()
	lists, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(node), "task/*/children"))
	harness.Must(t, err)
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that has ended
		}
		for pid := range strings.FieldsSeq(string(b)) {
			if name, _ := os.ReadFile(filepath.Join("/proc", pid, "cmdline")); strings.HasPrefix(string(name), "mobula-guard") {
				n, err := strconv.Atoi(pid)
				harness.Must(t, err)
				return n
			}
		}
	}
	t.Fatalf("node %d has no guard", node)
	return 0
}
