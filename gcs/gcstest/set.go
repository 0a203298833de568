package gcstest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"mobula/internal/testkit"
)

// serverEnv has a test's binary be a NATS server: a member, as JSON.
const serverEnv = "MOBULA_TEST_NATS"

// member is a server of a Set.
type member struct {
	Name, Dir   string
	Port, Route int
	Routes      string // of all members
}

// Main is the server of a Set, if this process is to be one, until its input ends. TestMain of a package with a Set calls it first.
func Main() bool {
	text := os.Getenv(serverEnv)
	if text == "" {
		return false
	}
	var m member
	err := json.Unmarshal([]byte(text), &m)
	var ns *server.Server
	if err == nil {
		ns, err = server.NewServer(&server.Options{
			ServerName: m.Name, Host: "127.0.0.1", Port: m.Port, JetStream: true, StoreDir: m.Dir, NoLog: true, NoSigs: true,
			Cluster: server.ClusterOpts{Name: "set", Host: "127.0.0.1", Port: m.Route}, Routes: server.RoutesFromStr(m.Routes),
		})
	}
	if err != nil {
		fmt.Println(err)
		return true
	}
	ns.Start()
	if !ns.ReadyForConnections(testkit.Patience()) {
		fmt.Println("it does not start")
		return true
	}
	fmt.Println("up")
	_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test
	end(ns)
	return true
}

// Set is a cluster of three NATS servers with JetStream, as an operator runs them: processes of their own.
type Set struct {
	URLs    []string
	members []member
	running []*exec.Cmd
}

// StartSet starts a Set that ends with the test. It has a leader when StartSet returns.
func StartSet(t *testing.T) *Set {
	t.Helper()
	s := &Set{running: make([]*exec.Cmd, 3)}
	var routes []string
	for i := range s.running {
		port := testkit.Ports(t, 2)
		m := member{Name: fmt.Sprintf("s%d", i+1), Dir: filepath.Join(t.TempDir(), "js"), Port: port, Route: port + 1}
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", m.Route))
		s.URLs = append(s.URLs, fmt.Sprintf("nats://127.0.0.1:%d", m.Port))
		s.members = append(s.members, m)
	}
	for i := range s.members {
		s.members[i].Routes = strings.Join(routes, ",")
		s.Start(t, i)
	}
	testkit.Eventually(t, "the set has a leader", func() bool {
		var known bool
		s.ask(t, func(js nats.JetStreamContext) { _, err := js.AccountInfo(); known = err == nil })
		return known
	})
	return s
}

// Start starts a server, again maybe.
func (s *Set) Start(t *testing.T, i int) {
	t.Helper()
	text, err := json.Marshal(s.members[i])
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.Env = append(os.Environ(), serverEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
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
	t.Cleanup(func() {
		_ = in.Close() // tells it to go
		late := time.AfterFunc(testkit.Patience(), func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		_ = cmd.Wait() // it may have been killed
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "up\n" {
		t.Fatalf("server %s says %q (%v)", s.members[i].Name, line, err)
	}
	s.running[i] = cmd
}

// Kill kills a server.
func (s *Set) Kill(t *testing.T, i int) {
	t.Helper()
	if err := s.running[i].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.running[i].Wait() // it was killed
}

// Leader is the server that leads a bucket, once there is one and all copies are in step.
func (s *Set) Leader(t *testing.T, bucket string) (leads int) {
	t.Helper()
	testkit.Eventually(t, bucket+" has a leader, and three copies in step", func() bool {
		leads = -1
		s.ask(t, func(js nats.JetStreamContext) {
			info, err := js.StreamInfo("KV_" + bucket)
			if err != nil || info.Cluster == nil || len(info.Cluster.Replicas) != 2 || !info.Cluster.Replicas[0].Current || !info.Cluster.Replicas[1].Current {
				return
			}
			for i, m := range s.members {
				if m.Name == info.Cluster.Leader {
					leads = i
				}
			}
		})
		return leads >= 0
	})
	return leads
}

// ask asks the set something.
func (s *Set) ask(t *testing.T, f func(nats.JetStreamContext)) {
	t.Helper()
	nc, err := nats.Connect(strings.Join(s.URLs, ","))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := nc.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	f(js)
}
