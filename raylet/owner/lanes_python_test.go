package owner_test

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/mobulatest"
	"mobula/wire"
)

// pythons is the program that has the workers in Python, python/tests/lanes_worker.py.
type pythons struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
}

// pyOrder is a line that it reads, pyState one that it writes.
type (
	pyOrder struct {
		Op     string       `json:"op"`
		Worker ids.ClientID `json:"worker"`
		Now    int64        `json:"now"`
		Do     string       `json:"do,omitempty"`
		Kind   wire.Kind    `json:"kind,omitempty"`
		Body   string       `json:"body,omitempty"`
	}
	pyState struct {
		At        string   `json:"at"`
		Task      string   `json:"task"`
		Ready     bool     `json:"ready"`
		Cancelled bool     `json:"cancelled"`
		Sent      string   `json:"sent"`
		Has       [][3]any `json:"has"`
	}
)

func startPythons(t *testing.T) *pythons {
	path := mobulatest.Python(t, "cbor2", "cloudpickle", "numpy")
	root, err := filepath.Abs("../../python")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, filepath.Join(root, "tests", "lanes_worker.py"))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+root)
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
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &pythons{t, in, bufio.NewReader(out)}
}

func (p *pythons) ask(o pyOrder) pyState {
	b, err := json.Marshal(o)
	if err == nil {
		_, err = p.in.Write(append(b, '\n'))
	}
	var line []byte
	if err == nil {
		line, err = p.out.ReadBytes('\n')
	}
	var s pyState
	if err == nil {
		err = json.Unmarshal(line, &s)
	}
	if err != nil {
		p.t.Fatalf("the program of the workers in Python, at %s: %v", b, err)
	}
	return s
}

// pySide is a worker in Python. Its executor, lane and waits are the real ones; what a task's code asks the node for is asked here.
type pySide struct {
	w        *lanesWorld
	p        *pythons
	id       ids.ClientID
	state    pyState
	out      []wire.Msg
	handles  map[ids.ObjectID]bool
	got      map[ids.ObjectID]bool
	children []ids.ObjectID // of the task that runs
	running  ids.TaskID
}

func (p *pythons) start(w *lanesWorld, id ids.ClientID) side {
	s := &pySide{w: w, p: p, id: id, handles: make(map[ids.ObjectID]bool), got: make(map[ids.ObjectID]bool)}
	s.ask("start", pyOrder{})
	return s
}

func (s *pySide) ask(op string, o pyOrder) {
	o.Op, o.Worker, o.Now = op, s.id, s.w.now
	s.state = s.p.ask(o)
	b, err := hex.DecodeString(s.state.Sent)
	for err == nil && len(b) > 0 {
		tag, n := binary.Uvarint(b)
		size, k := binary.Uvarint(b[n:])
		body := b[n+k : n+k+int(size)]
		b = b[n+k+int(size):]
		var m wire.Msg
		if m, err = wire.Decode(wire.Kind(tag>>3), body); err == nil {
			s.out = append(s.out, m)
		}
	}
	if err != nil {
		s.w.fail("worker %d sends what cannot be read: %v", s.id, err)
	}
	s.follow()
}

// follow sees which task's code runs.
func (s *pySide) follow() {
	var now ids.TaskID
	b, _ := hex.DecodeString(s.state.Task)
	copy(now[:], b)
	if now != s.running {
		if !s.running.IsZero() {
			s.w.ended(s.running)
			s.release()
		}
		if !now.IsZero() {
			s.w.began(now, s.id)
		}
		s.running = now
	}
}

// release is the end of the code that ran.
func (s *pySide) release() {
	for _, id := range s.children {
		s.out = append(s.out, &wire.Release{IDs: []ids.ObjectID{id}})
		delete(s.handles, id)
		delete(s.got, id)
	}
	s.children = nil
}

func (s *pySide) deliver(m wire.Msg) {
	switch m := m.(type) {
	case *wire.Resolved:
		if s.handles[m.ID] {
			s.got[m.ID] = true
		}
	case *wire.Resync:
		h := &wire.Holdings{Component: m.Component, Epoch: m.Epoch}
		h.Tasks = append(h.Tasks, s.attempts()...)
		for _, id := range s.children {
			h.Handles = append(h.Handles, id)
			if !s.got[id] {
				h.Gets = append(h.Gets, wire.Get{ID: id, Fetch: true})
			}
		}
		s.out = append(s.out, h)
	default:
		s.ask("hear", pyOrder{Kind: m.Kind(), Body: hex.EncodeToString(wire.Append(nil, m))})
	}
}

// acts is the main thread's next step.
func (s *pySide) acts() []func() {
	do := ""
	switch {
	case s.state.Ready:
	case s.state.At == "user" && s.w.depth[s.running] > 0 && len(s.children) == 0 && !s.state.Cancelled:
		do = "get"
	case s.state.At == "user":
		do = "end"
	case s.state.At == "get":
		for _, id := range s.children {
			if !s.got[id] && !s.state.Cancelled {
				return nil
			}
		}
		do = "got"
	default:
		return nil
	}
	return []func(){func() {
		if do == "get" {
			for i := range uint64(2) {
				spec := s.w.spec(s.running, i+1, s.w.depth[s.running]-1)
				id := spec.ID.Return(0)
				s.children, s.handles[id] = append(s.children, id), true
				s.out = append(s.out, &wire.Submit{Spec: spec}, &wire.Get{ID: id, Fetch: true})
			}
		}
		s.ask("step", pyOrder{Do: do})
	}}
}

// whims is a look of the thread that is awake meanwhile.
func (s *pySide) whims() []func() { return []func(){func() { s.ask("tick", pyOrder{}) }} }

func (s *pySide) sent() []wire.Msg {
	out := s.out
	s.out = nil
	return out
}

func (s *pySide) attempts() []wire.Attempt {
	st := s.p.ask(pyOrder{Op: "has", Worker: s.id, Now: s.w.now})
	var out []wire.Attempt
	for _, x := range st.Has {
		var a wire.Attempt
		b, _ := hex.DecodeString(x[0].(string))
		copy(a.Task[:], b)
		a.Attempt, a.Lease = uint32(x[1].(float64)), ids.LeaseID(x[2].(float64))
		out = append(out, a)
	}
	return out
}

func (s *pySide) has() map[ids.TaskID]bool {
	out := make(map[ids.TaskID]bool)
	for _, a := range s.attempts() {
		out[a.Task] = true
	}
	return out
}

func (s *pySide) end() { s.p.ask(pyOrder{Op: "end", Worker: s.id, Now: s.w.now}) }

// The logic of Python's workers against the owner, as TestSimulationOfGoWorkersLanes has it of Go's.
func TestSimulationOfPythonWorkersLanes(t *testing.T) {
	p := startPythons(t)
	for name, plan := range lanesPlans {
		t.Run(name, func(t *testing.T) {
			for _, seed := range testkit.Seeds(t, lanesSeeds) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { newLanesWorld(t, seed, plan, p.start).run() })
			}
		})
	}
}
