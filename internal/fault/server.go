package fault

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"

	"mobula/internal/errs"
)

// server answers the other processes of a test.
type server struct {
	dir  string // its own
	path string
	plan *Plan
	l    net.Listener
	work sync.WaitGroup
	life context.Context
	end  context.CancelFunc
}

// question is a question of another process; without a site it asks which sites the rules name.
type question struct {
	Site Site    `json:"site"`
	Who  Subject `json:"who"`
	PID  int     `json:"pid"` // who asks
}

// answer is the answer to a question.
type answer struct {
	Decision
	Sites []Site `json:"sites,omitempty"`
}

// listen opens a socket in a directory that only the user may enter.
func listen(p *Plan) (*server, error) {
	dir, err := os.MkdirTemp("", "mobula-chaos-")
	if err != nil {
		return nil, errs.New(errs.CodeInvalid, "chaos: socket of the plan: %v", err)
	}
	path := filepath.Join(dir, "plan")
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, errors.Join(errs.New(errs.CodeInvalid, "chaos: socket of the plan: %v", err), os.Remove(dir))
	}
	s := &server{dir: dir, path: path, plan: p, l: l}
	s.life, s.end = context.WithCancel(context.Background())
	s.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // it was closed
			}
			s.work.Go(func() { s.serve(c) })
		}
	})
	return s, nil
}

func (s *server) close() error {
	s.end()
	err := s.l.Close()
	s.work.Wait()
	return errors.Join(err, os.RemoveAll(s.dir))
}

// serve answers one connection, one question at a time. The end of the connection ends a wait.
func (s *server) serve(c net.Conn) {
	ctx, cancel := context.WithCancel(s.life)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	questions := make(chan question)
	s.work.Go(func() {
		defer cancel()
		in := json.NewDecoder(c)
		for {
			var q question
			if in.Decode(&q) != nil {
				return // the process has gone
			}
			select {
			case questions <- q:
			case <-ctx.Done():
				return
			}
		}
	})
	out := json.NewEncoder(c)
	for {
		select {
		case q := <-questions:
			a := s.answer(ctx, q)
			if ctx.Err() != nil || out.Encode(a) != nil {
				cancel()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (s *server) answer(ctx context.Context, q question) answer {
	if q.Site.Kind == "" {
		var a answer
		for _, r := range s.plan.rules {
			a.Sites = append(a.Sites, r.At)
		}
		return a
	}
	d, killed := s.plan.ask(ctx, q.Site, q.Who)
	if killed && q.Who.PID == q.PID {
		<-ctx.Done() // the process that asked was killed
	}
	return answer{Decision: d}
}
