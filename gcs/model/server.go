package model

import (
	"strconv"
	"time"

	"mobula/gcs"
)

// server is a server of the control plane: the core that judges, the feed to the nodes that are connected to it, and what its processor and network have to do.
type server struct {
	t      *Tables
	number int
	core   *gcs.Core
	nodes  []*node
	feed   feed
	beats  *gcs.Heartbeats       // that it has heard
	began  []int64               // when each of them was told
	queues map[gcs.Bucket]*queue // calls of its own core
	timer  uint64                // the number of the core's present one
	free   int64                 // when its processors have done what they have to
	wired  int64                 // when its network has
	seen   int64                 // when its watches have shown the last change
	worked time.Duration         // by all of them
	sent   uint64
}

// newServer makes a server that has all rows.
func (t *Tables) newServer(i int) *server {
	s := &server{t: t, number: i, core: gcs.NewCore(), feed: newFeed(), beats: gcs.NewHeartbeats(), queues: make(map[gcs.Bucket]*queue)}
	for _, b := range gcs.Buckets {
		s.queues[b] = &queue{}
		for n := range t.cfg.Nodes {
			if c, ok := t.rows[b][homeOf(n).String()]; ok {
				s.core.Step(0, c)
				s.feed.rows[b][c.Key] = c
			}
		}
	}
	t.clock.After(time.Duration(t.random.Int64N(int64(gcs.GatherEvery))), s.gather)
	s.live()
	return s
}

// hear takes a heartbeat of a node, told at that time.
func (s *server) hear(b gcs.Heartbeat, at int64) {
	s.beats.Add(b)
	s.began = append(s.began, at)
}

// gather writes the heartbeats that were heard, and waits for that before it does so again.
func (s *server) gather() {
	c, due := &s.t.clock, s.t.clock.Now()+int64(gcs.GatherEvery)
	all, began := s.beats.Take(), s.began
	s.began = nil
	if len(all) == 0 {
		c.At(due, s.gather)
		return
	}
	s.call(gcs.Write{Record: gcs.BeatsRecord{Server: strconv.Itoa(s.number), Beats: all}, Revision: -1}, func(gcs.Answered) {
		for _, at := range began {
			s.t.writes = append(s.t.writes, time.Duration(c.Now()-at))
		}
		for due < c.Now() { // a ticker leaves out what nobody waits for
			due += int64(gcs.GatherEvery)
		}
		c.At(due, s.gather)
	})
}

// work has the processors do something that takes so long, behind what they have to do already.
func (s *server) work(d time.Duration, then func()) {
	s.occupy(d)
	s.t.clock.At(s.free, then)
}

// occupy takes the processors for so long in all.
func (s *server) occupy(d time.Duration) {
	s.worked += d
	s.free = max(s.free, s.t.clock.Now()) + int64(d)/int64(s.t.cfg.Costs.Processors)
}

// step steps the core.
func (s *server) step(ev gcs.Event) {
	for _, e := range s.core.Step(s.t.clock.Now(), ev) {
		switch e := e.(type) {
		case gcs.After:
			s.timer++
			timer := s.timer
			s.t.clock.After(e.D, func() {
				if timer == s.timer {
					s.step(e.Ev)
				}
			})
		case gcs.TellBeat:
			s.hear(e.Heartbeat, s.t.clock.Now())
		case gcs.Write, gcs.Read:
			b, _, _ := gcs.Touches(e)
			s.queues[b].add(s, e)
		case gcs.Fenced:
			s.t.told(int(e.Life.Home)-1, s.t.clock.Now())
		}
	}
}

// queue is the calls of a core to one table, which are made one after the other.
type queue struct {
	calls []gcs.Effect
	busy  bool
}

func (q *queue) add(s *server, e gcs.Effect) {
	q.calls = append(q.calls, e)
	if !q.busy {
		q.next(s)
	}
}

func (q *queue) next(s *server) {
	if q.busy = len(q.calls) > 0; !q.busy {
		return
	}
	e := q.calls[0]
	q.calls = q.calls[1:]
	s.call(e, func(a gcs.Answered) {
		s.step(a)
		q.next(s)
	})
}

// way has something done after a message has gone from this server to another one.
func (s *server) way(to *server, bytes int, then func()) {
	if s == to {
		then()
		return
	}
	s.sent += uint64(bytes)
	s.t.clock.At(s.t.clock.Now()+s.t.latency(), then)
}

// call makes a call to the tables, by the server that leads them.
func (s *server) call(e gcs.Effect, done func(gcs.Answered)) {
	t, leader := s.t, s.t.servers[0]
	id, size := gcs.CallID(e), 0
	if w, ok := e.(gcs.Write); ok {
		size = t.size(w.Record)
	}
	s.way(leader, size+askHead, func() {
		leader.work(t.cfg.Costs.Handle, func() {
			answer := func(a gcs.Answered) {
				a.ID = id
				leader.way(s, answerHead, func() { done(a) })
			}
			switch e := e.(type) {
			case gcs.Read:
				row := t.rows[e.Bucket][e.Key]
				answer(gcs.Answered{Record: row.Record, Revision: row.Revision})
			case gcs.Write:
				t.append(write{e, answer})
			}
		})
	})
}
