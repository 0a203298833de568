package fault

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"sync"

	"mobula/internal/errs"
)

// Remote is a connection to a plan in another process.
type Remote struct {
	path  string
	rules []Rule // only their sites; immutable

	mu     sync.Mutex
	spare  []*line // guarded by mu: connections on which nobody asks
	closed bool    // guarded by mu
}

type line struct {
	net.Conn
	in  *json.Decoder
	out *json.Encoder
}

var _ Decider = (*Remote)(nil)

// Dial finds the plan whose socket is at path.
func Dial(path string) (*Remote, error) {
	r := &Remote{path: path}
	a, err := r.ask(context.Background(), question{})
	if err != nil {
		return nil, errs.New(errs.CodeInvalid, "chaos: the plan at %s: %v", path, err)
	}
	for _, s := range a.Sites {
		r.rules = append(r.rules, Rule{At: s})
	}
	return r, nil
}

// Wants implements Decider.
func (r *Remote) Wants(k Kind, name string) bool { return wants(r.rules, k, name) }

// Address implements Decider.
func (r *Remote) Address() string { return r.path }

// Calm implements Decider: another process' calls end with their contexts.
func (r *Remote) Calm() <-chan struct{} { return nil }

// Ask implements Decider. If the plan is gone it makes no faults. Who is cancelled before it has answered is as one who is delayed until then.
func (r *Remote) Ask(ctx context.Context, s Site, who Subject) Decision {
	a, err := r.ask(ctx, question{Site: s, Who: who, PID: os.Getpid()})
	switch {
	case err == nil:
		return a.Decision
	case ctx.Err() != nil:
		return Decision{Do: Delay}
	}
	return Decision{}
}

func (r *Remote) ask(ctx context.Context, q question) (a answer, err error) {
	l, err := r.line()
	if err != nil {
		return a, err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() }) // then the read below ends
	if err = l.out.Encode(q); err == nil {
		err = l.in.Decode(&a)
	}
	if !stop() || err != nil || !r.keep(l) {
		_ = l.Close()
	}
	return a, err
}

func (r *Remote) line() (*line, error) {
	r.mu.Lock()
	if n := len(r.spare); n > 0 {
		l := r.spare[n-1]
		r.spare = r.spare[:n-1]
		r.mu.Unlock()
		return l, nil
	}
	r.mu.Unlock()
	c, err := net.Dial("unix", r.path)
	if err != nil {
		return nil, err
	}
	return &line{c, json.NewDecoder(c), json.NewEncoder(c)}, nil
}

func (r *Remote) keep(l *line) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.spare = append(r.spare, l)
	}
	return !r.closed
}

// Close closes the connections; questions under way are still answered.
func (r *Remote) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, l := range r.spare {
		_ = l.Close()
	}
	r.spare = nil
}
