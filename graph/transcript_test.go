package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mobula/internal/transcript"
)

// TestTranscripts tells the stories of testdata/transcripts (package transcript): events for a graph's scheduler, and what it then asks of workers.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(*testing.T) func(transcript.Block) []string {
		s := &story{names: make(map[WorkerID]string)}
		return func(b transcript.Block) []string {
			s.Block, s.said = b, nil
			s.run()
			return s.said
		}
	})
}

// story is a graph and workers that have names.
type story struct {
	transcript.Block
	w     *world
	names map[WorkerID]string
	said  []string
}

func (s *story) run() {
	switch s.Cmd {
	case "graph": // graph want=(KEY, KEY) [policy=withhold], and a line "KEY: NEEDS... [retries=N]" a task
		s.graph()
	case "join": // join WORKER... [threads=N]
		for _, name := range s.Words() {
			s.names[s.w.next] = name
			s.w.joinAs(WorkerJoined{Name: name, Threads: s.Int("threads", 1)})
		}
	case "start":
		s.w.step(Start{})
	case "done": // done KEY...: where they were sent to
		for i := range s.Words() {
			t := s.key(i)
			s.w.done(s.where(t), t, 100)
		}
	case "fails": // fails KEY error=(WORDS) [for-good]
		t := s.key(0)
		id := s.where(t)
		n := s.w.workers[id].tasks[t]
		delete(s.w.workers[id].tasks, t)
		s.w.step(Failure{Task: t, Attempt: n, Worker: id, Err: errors.New(s.Text("error", "it is broken")), Retriable: !s.Has("for-good")})
	case "begins": // begins KEY: its worker runs it
		s.w.begin(s.where(s.key(0)), s.key(0))
	case "arrives": // arrives KEY WORKER: the copy is there
		if _, coming := s.w.workers[s.worker(1)].coming[s.key(0)]; !coming {
			s.Fatalf("%s is not on its way to %s", s.Word(0), s.Word(1))
		}
		s.w.arrive(s.worker(1), s.key(0))
	case "tick": // the time has come to look who is idle
		s.w.step(Tick{})
	case "gives-back": // what the worker was asked to give back
		r := s.w.recalls[0]
		s.w.recalls = s.w.recalls[1:]
		s.w.step(r)
	case "dies": // dies WORKER: by what it ran
		s.w.kill(s.worker(0), true)
	case "leaves": // leaves WORKER: by nobody's fault
		s.w.kill(s.worker(0), false)
	case "cancel":
		var ts []int32
		for i := range s.Words() {
			ts = append(ts, s.key(i))
		}
		s.w.step(Cancel{Tasks: ts})
	case "release": // release KEY: nobody wants its result any more
		s.w.step(Want{Tasks: []int32{s.key(0)}, Off: true})
	case "states":
		for t := range s.w.g.Len() {
			s.say("%s is %v", s.w.g.Key(int32(t)), s.w.c.State(int32(t)))
		}
	default:
		s.Unknown()
	}
}

func (s *story) graph() {
	b := &builder{wanted: s.List("want")}
	for _, line := range s.Input() {
		key, rest, _ := strings.Cut(line, ":")
		needs := strings.Fields(rest)
		var retries int
		if n := len(needs); n > 0 {
			if _, err := fmt.Sscanf(needs[n-1], "retries=%d", &retries); err == nil {
				needs = needs[:n-1]
			}
		}
		if t := b.add(key, needs...); retries > 0 {
			t.Ann = &Annotations{Retries: retries}
		}
	}
	cfg := DefaultConfig()
	if s.Text("policy", "") == "withhold" {
		cfg.Policy = Withhold
	}
	s.w = newWorld(s.T, b.graph(s.T), cfg)
	s.w.show = s.effect
}

func (s *story) key(i int) int32 { return s.w.key(s.Word(i)) }

func (s *story) where(t int32) WorkerID {
	id := s.w.where(t)
	if id < 0 {
		s.Fatalf("%s was sent nowhere", s.w.g.Key(t))
	}
	return id
}

func (s *story) worker(i int) WorkerID {
	for id, name := range s.names {
		if name == s.Word(i) {
			return id
		}
	}
	s.Fatalf("no worker is called %q", s.Word(i))
	return -1
}

func (s *story) say(format string, args ...any) {
	s.said = append(s.said, fmt.Sprintf(format, args...))
}

func (s *story) effect(e Effect) {
	key := s.w.g.Key
	switch e := e.(type) {
	case Run:
		s.say("%s <- run attempt %d of %s", s.names[e.Worker], e.Attempt, key(e.Task))
	case Fetch:
		s.say("%s <- fetch %s from %s", s.names[e.To], key(e.Task), s.names[e.From])
	case Stop:
		s.say("%s <- stop attempt %d of %s", s.names[e.Worker], e.Attempt, key(e.Task))
	case Recall:
		s.say("%s <- give %s back, if it has not begun", s.names[e.Worker], key(e.Task))
	case Free:
		ids := slices.Clone(e.Workers)
		slices.Sort(ids)
		for _, id := range ids {
			s.say("%s <- free %s", s.names[id], key(e.Task))
		}
	case Result:
		s.say("client <- %s is on %s", key(e.Task), s.names[e.Worker])
	case Failed:
		why := []string{e.Err.Error()}
		for _, t := range e.Chain[1:] {
			why = append(why, "of "+key(t))
		}
		s.say("client <- %s cannot be made: %s", key(e.Task), strings.Join(why, ", "))
	case Finished:
		s.say("client <- all is made, or has failed")
	}
}
