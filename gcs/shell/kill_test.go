package shell

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"mobula/actors"
	"mobula/gcs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/internal/trust"
	"mobula/internal/trust/credentials"
	"mobula/internal/trust/trusttest"
	"mobula/remote"
)

// serverVariable has the test's binary be a server in a process of its own: a serverJob, as JSON.
const serverVariable = "MOBULA_TEST_SERVER"

type serverJob struct {
	Dir, Cluster, Clients, Routes string
	Home                          ids.Home
	Others                        []string
}

// runServer is a server until its standard input ends, or it is killed.
func runServer() {
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	var job serverJob
	fail(json.Unmarshal([]byte(os.Getenv(serverVariable)), &job))
	own, err := credentials.InDir(job.Dir).Read()
	fail(err)
	live, err := credentials.NewLive(own, func() time.Time { return trusttest.Began })
	fail(err)
	g, err := Start(actors.NewSystem(actors.Config{}), Config{Dir: filepath.Join(job.Dir, "gcs"), Node: "n" + job.Home.String(), Listen: &ListenConfig{
		Live: func() *credentials.Live { return live }, Cluster: job.Cluster, Identity: "identity-" + job.Home.String(),
		Clients: job.Clients, Routes: job.Routes, Others: job.Others,
	}, Fenced: func(l remote.Life) { fmt.Println("fenced", l.Home) }})
	fail(err)
	fmt.Println("up")
	g.Announce(gcs.NodeRecord{Home: job.Home, Epoch: 1, Name: "n" + job.Home.String()}, time.Second)
	_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test
}

// process starts a server in a process of its own.
func (c *testCluster) process(home ids.Home, others ...serverJob) (serverJob, *exec.Cmd) {
	c.t.Helper()
	job := c.job(home, others...)
	p, said := c.run(job)
	said("up")
	return job, p
}

// job is a server that has its credentials.
func (c *testCluster) job(home ids.Home, others ...serverJob) serverJob {
	c.t.Helper()
	job := serverJob{Dir: filepath.Join(c.dir, home.String()), Cluster: "test", Clients: freeAddress(c.t), Routes: freeAddress(c.t), Home: home}
	for _, o := range others {
		job.Others = append(job.Others, o.Routes)
	}
	if err := os.MkdirAll(job.Dir, 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := credentials.InDir(job.Dir).Write(c.trust.Node(c.t, trust.ControlPlane, home, 1)); err != nil {
		c.t.Fatal(err)
	}
	return job
}

// run starts a server's process; said waits until it has said something.
func (c *testCluster) run(job serverJob) (p *exec.Cmd, said func(string)) {
	c.t.Helper()
	text, err := json.Marshal(job)
	if err != nil {
		c.t.Fatal(err)
	}
	p = exec.Command(os.Args[0])
	p.Env = append(os.Environ(), serverVariable+"="+string(text))
	p.Stderr = os.Stderr
	if _, err = p.StdinPipe(); err != nil {
		c.t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = p.Process.Kill() // it may have been killed
		_ = p.Wait()
	})
	lines := bufio.NewReader(out)
	return p, func(what string) {
		c.t.Helper()
		if line, err := lines.ReadString('\n'); line != what+"\n" {
			c.t.Fatalf("server %v says %q, want %q (%v)", job.Home, line, what, err)
		}
	}
}

// begun gives homes their first lives in a cluster whose servers are other processes, and waits until each table has three copies.
func (c *testCluster) begun(server serverJob, homes ...ids.Home) {
	c.t.Helper()
	admin, err := dialCluster([]string{server.Clients}, c.trust.Live(c.t, trust.ControlPlane, 9, 1), net.Dialer{}, "admin")
	if err != nil {
		c.t.Fatal(err)
	}
	defer admin.Close()
	js, err := admin.JetStream()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, home := range homes {
		testkit.Eventually(c.t, "a home has its row", func() bool {
			_, err := js.Publish(subject(gcs.Homes, home.String()), fmt.Appendf(nil, `{"home":%d,"identity":"i","epoch":1}`, home))
			return err == nil
		})
	}
	for _, b := range shared {
		testkit.Eventually(c.t, "three copies", func() bool {
			info, err := js.StreamInfo(stream(b))
			return err == nil && info.Cluster != nil && len(info.Cluster.Replicas) == 2 && info.Cluster.Replicas[0].Current && info.Cluster.Replicas[1].Current
		})
	}
}

// A server that leads is killed under writes: none that was acknowledged is lost, writes go on, and the others end the life of its node.
func TestALeaderIsKilled(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	one, leads := c.process(1)
	two, _ := c.process(2, one)
	_, _ = c.process(3, one, two)
	c.begun(one, 1, 2, 3, 4)
	var mu sync.Mutex
	fenced := make(map[remote.Life]time.Time)
	beats := make(map[ids.Home]uint64)
	n := c.node(trust.Data, 4, func(cfg *Config) {
		cfg.Servers = []string{one.Clients}
		cfg.Heard = func(r gcs.NodeRecord) {
			mu.Lock()
			defer mu.Unlock()
			beats[r.Home] = r.Beats
		}
		cfg.Fenced = func(l remote.Life) {
			mu.Lock()
			defer mu.Unlock()
			fenced[l] = time.Now()
		}
	})
	n.Announce(gcs.NodeRecord{Home: 4, Epoch: 1, Name: "n4"}, time.Second)
	testkit.Eventually(t, "all beat", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return beats[1] > 3 && beats[2] > 3 && beats[3] > 3 && beats[4] > 3
	})
	w := startCounting(t, n, 4, 2)
	testkit.Eventually(t, "writes", func() bool { return w.count() > 100 })
	at := time.Now()
	if err := leads.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = leads.Wait()    // it was killed
	before := w.count() // and at most what both writers have under way is still answered
	testkit.Eventually(t, "writes go on", func() bool { return w.count() > before+10 })
	t.Logf("writes go on after %v", time.Since(at))
	dead := remote.Life{Home: 1, Epoch: 1}
	testkit.Eventually(t, "the node of the server is fenced", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return !fenced[dead].IsZero()
	})
	mu.Lock()
	t.Logf("its node is fenced after %v", fenced[dead].Sub(at))
	if len(fenced) != 1 {
		t.Errorf("fenced are %v", fenced)
	}
	mu.Unlock()
	w.end(t, n.tables)
}

// All servers are killed at once under writes: they come back with all that was acknowledged, and who waited goes on.
func TestAllServersAreKilled(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	one, p := c.process(1)
	two, q := c.process(2, one)
	three, r := c.process(3, one, two)
	c.begun(one, 1, 2, 3, 4)
	one.Others = []string{two.Routes, three.Routes}
	two.Others = append(two.Others, three.Routes)
	n := c.node(trust.Data, 4, func(cfg *Config) { cfg.Servers = []string{one.Clients} })
	w := startCounting(t, n, 4, 2)
	testkit.Eventually(t, "writes", func() bool { return w.count() > 100 })
	for _, p := range []*exec.Cmd{p, q, r} {
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Now()
	var wait []func(string)
	for _, job := range []serverJob{one, two, three} {
		_, said := c.run(job)
		wait = append(wait, said)
	}
	for _, said := range wait {
		said("up")
	}
	t.Logf("they are up after %v", time.Since(at))
	before := w.count()
	testkit.Eventually(t, "writes go on", func() bool { return w.count() > before+10 })
	t.Logf("writes go on after %v", time.Since(at))
	w.end(t, n.tables)
}

// Two servers that join at the same moment join the set that is there, and make none of their own.
func TestServersJoinTogether(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	one, _ := c.process(1)
	var wait []func(string)
	var jobs []serverJob
	for _, home := range []ids.Home{2, 3} {
		job := c.job(home, one)
		_, said := c.run(job)
		wait, jobs = append(wait, said), append(jobs, job)
	}
	for _, said := range wait {
		said("up")
	}
	c.begun(jobs[1], 1, 2, 3)
}

// A server that stops without a word is left by its nodes, its own node is fenced, and it learns so when it goes on.
func TestAServerIsStopped(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	job := c.job(1)
	stopped, said := c.run(job)
	said("up")
	two, _ := c.process(2, job)
	_, _ = c.process(3, job, two)
	c.begun(job, 1, 2, 3, 4)
	fenced := make(chan remote.Life, 10)
	n := c.node(trust.Data, 4, func(cfg *Config) {
		cfg.Servers = []string{job.Clients}
		cfg.Fenced = func(l remote.Life) { fenced <- l }
	})
	n.Announce(gcs.NodeRecord{Home: 4, Epoch: 1, Name: "n4"}, time.Second)
	testkit.Eventually(t, "all beat", func() bool {
		rows, err := n.Call(t.Context(), gcs.List{Bucket: gcs.Nodes})
		return err == nil && len(rows) == 4
	})
	at := time.Now()
	if err := stopped.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Call(testkit.Within(t), gcs.Claim{Actor: actorOf(4, "hits")}); err != nil {
		t.Error(err)
	}
	t.Logf("a name is claimed after %v", time.Since(at))
	select {
	case l := <-fenced:
		t.Logf("%v is fenced after %v", l, time.Since(at))
		if l != (remote.Life{Home: 1, Epoch: 1}) {
			t.Errorf("fenced is %v", l)
		}
	case <-time.After(testkit.Patience()):
		t.Error("the stopped node is not fenced")
	}
	if err := stopped.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	said("fenced 1")
}
