package node

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fxamacker/cbor/v2"

	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/inspect"
	"mobula/internal/state"
	"mobula/wire"
)

// The bounds of cold requests: they must not disturb the tasks.
const (
	maxColdRunning = 4                       // at once, of all clients
	maxColdWaiting = 2 * wire.RequestsAtOnce // of one client, unanswered
	coldTimeout    = time.Minute
)

// requests are the cold ones under way.
type requests struct {
	running chan struct{} // tokens of those that run at once
	stop    atomic.Pointer[chan struct{}]

	mu sync.Mutex // of closing what stop points to
}

// handlers answer cold requests: a body in, a reply out, both CBOR.
var handlers = map[string]func(*Node, context.Context, []byte) (any, error){
	state.MethodPing:       handle((*Node).ping),
	state.MethodStop:       handle((*Node).stopNode),
	state.MethodMetrics:    handle((*Node).metricsText),
	state.MethodStatus:     look((*inspect.Inspector).Status),
	state.MethodTasks:      look((*inspect.Inspector).Tasks),
	state.MethodActors:     look((*inspect.Inspector).Actors),
	state.MethodObjects:    look((*inspect.Inspector).Objects),
	state.MethodWorkers:    look((*inspect.Inspector).Workers),
	state.MethodGraphs:     look((*inspect.Inspector).Graphs),
	state.MethodJobs:       look((*inspect.Inspector).Jobs),
	state.MethodNodes:      look((*inspect.Inspector).Nodes),
	state.MethodComponents: look((*inspect.Inspector).Components),
	state.MethodMemory:     look((*inspect.Inspector).Memory),
	state.MethodUsage:      look((*inspect.Inspector).Usage),
	state.MethodExplain:    look((*inspect.Inspector).Explain),
	state.MethodTimeline:   look((*inspect.Inspector).Timeline),
	state.MethodLogs:       look((*inspect.Inspector).Logs),
	state.MethodCancel:     look((*inspect.Inspector).Cancel),
	state.MethodKill:       look((*inspect.Inspector).Kill),
	state.MethodActorGet:   handle((*Node).actorGet),
	state.MethodSpans: handle(func(n *Node, ctx context.Context, r state.SpansRequest) (state.SpansReply, error) {
		return n.obs.TakeSpans(ctx, r)
	}),
	state.MethodSecede: handle((*Node).secede),
}

// empty is the body of a request that says nothing.
type empty = inspect.Empty

// look makes a handler of what inspection answers.
func look[In, Out any](f func(*inspect.Inspector, context.Context, In) (Out, error)) func(*Node, context.Context, []byte) (any, error) {
	return handle(func(n *Node, ctx context.Context, in In) (Out, error) { return f(n.inspect, ctx, in) })
}

// handle makes a handler of a method with typed request and reply.
func handle[In, Out any](f func(*Node, context.Context, In) (Out, error)) func(*Node, context.Context, []byte) (any, error) {
	return func(n *Node, ctx context.Context, body []byte) (any, error) {
		var in In
		if len(body) > 0 {
			if err := strict.Unmarshal(body, &in); err != nil {
				return nil, errs.New(errs.CodeInvalid, "the request's body: %v", err)
			}
		}
		return f(n, ctx, in)
	}
}

// strict refuses fields that the request does not have: a filter that is misspelt must not
// be ignored.
var strict = func() cbor.DecMode {
	m, err := cbor.DecOptions{ExtraReturnErrors: cbor.ExtraDecErrorUnknownField, MaxNestedLevels: 16, MaxArrayElements: 1 << 16}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return m
}()

// cold answers a request beside everything else. It does not block.
func (n *Node) cold(s *session, m *wire.Request) {
	if waiting := s.cold.Add(1); waiting > maxColdWaiting {
		s.cold.Add(-1)
		reply(s, m, nil, errs.New(errs.CodeBacklog, "%s: %d requests of this client wait already; wait for answers", m.Method, waiting-1))
		return
	}
	n.work.Go(func() {
		out, err := n.answer(m)
		s.cold.Add(-1)
		reply(s, m, out, err)
		if m.Method == state.MethodStop && err == nil {
			n.passStop() // once it is answered: what stops closes the connections
		}
	})
}

func reply(s *session, m *wire.Request, body []byte, err error) {
	s.Push(&wire.Reply{Req: m.Req, Body: body, Err: errs.From(err)})
	s.Flush()
}

// answer runs a request's handler when its turn has come. A handler that panics fails its
// request and nothing else.
func (n *Node) answer(m *wire.Request) (body []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errs.New(errs.CodePanic, "%s: the node's handler panicked: %v", m.Method, p)
			n.cfg.Logger.Error("a request's handler panicked", "method", m.Method, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	h := handlers[m.Method]
	if h == nil {
		return nil, errs.New(errs.CodeNotFound, "node %s knows no request %q", n.cfg.Name, m.Method)
	}
	ctx, cancel := context.WithTimeout(n.life, coldTimeout)
	defer cancel()
	select {
	case n.requests.running <- struct{}{}:
		defer func() { <-n.requests.running }()
	case <-ctx.Done():
		return nil, n.late(ctx, m.Method)
	}
	out, err := h(n, ctx, m.Body)
	if err != nil {
		if ctx.Err() != nil {
			return nil, n.late(ctx, m.Method)
		}
		return nil, err
	}
	if body, err = cbor.Marshal(out); err != nil {
		return nil, fmt.Errorf("%s: the reply: %w", m.Method, err)
	}
	if len(body) > wire.MaxFrame/2 {
		return nil, errs.New(errs.CodeInvalid, "%s: the reply has %d bytes, at most %d can be sent; ask for fewer rows", m.Method, len(body), wire.MaxFrame/2)
	}
	return body, nil
}

// late says why a request was given up.
func (n *Node) late(ctx context.Context, method string) error {
	if n.life.Err() != nil {
		return errs.New(errs.CodeShutdown, "node %s is stopping", n.cfg.Name)
	}
	return errs.New(errs.CodeDeadline, "%s: not answered in %v: the node is busy: %v", method, coldTimeout, context.Cause(ctx))
}

func (n *Node) ping(context.Context, empty) (state.Pong, error) {
	return state.Pong{Node: n.cfg.Name, PID: os.Getpid(), Time: n.clock.Now()}, nil
}

// stopNode agrees to end, if whoever runs the node listens to that.
func (n *Node) stopNode(_ context.Context, r state.StopRequest) (state.Stopping, error) {
	if n.requests.stop.Load() == nil {
		return state.Stopping{}, errs.New(errs.CodePermission, "node %s is part of a program, process %d: end that", n.cfg.Name, os.Getpid())
	}
	n.cfg.Logger.Info("the node was asked to stop", "reason", r.Reason)
	return state.Stopping{Node: n.cfg.Name, PID: os.Getpid()}, nil
}

// passStop tells whoever runs the node, once.
func (n *Node) passStop() {
	c := *n.requests.stop.Load()
	n.requests.mu.Lock()
	defer n.requests.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

// StopRequested is closed when a tool asks the node to stop. A node that nobody calls it of,
// one inside a program, refuses to be stopped from elsewhere.
func (n *Node) StopRequested() <-chan struct{} {
	c := make(chan struct{})
	if n.requests.stop.CompareAndSwap(nil, &c) {
		return c
	}
	return *n.requests.stop.Load()
}

func (n *Node) metricsText(context.Context, empty) (state.Text, error) {
	b, err := n.obs.Set().Text()
	return state.Text{Body: b}, err
}

// actorGet finds a named actor in the control plane.
func (n *Node) actorGet(ctx context.Context, r state.ActorRequest) (state.ActorReply, error) {
	rec, err := n.named(ctx, r)
	if err != nil {
		return state.ActorReply{}, err
	}
	id, err := parseActor(rec.Actor)
	return state.ActorReply{Actor: ids.TaskID(id).Bytes(), Type: rec.Type, JobDir: n.jobDir(rec.Job), MaxPendingCalls: rec.MaxPendingCalls}, err
}

// named gives what the control plane has under an actor's name.
func (n *Node) named(ctx context.Context, r state.ActorRequest) (rec gcs.ActorRecord, err error) {
	if r.Namespace == "" {
		r.Namespace = n.cfg.Namespace
	}
	records, err := n.askWait(ctx, gcs.Lookup{Bucket: gcs.Actors, Key: gcs.ActorKey(r.Namespace, r.Name)})
	found, ok := firstActor(records)
	switch {
	case err != nil && errs.From(err).Code == errs.CodeNotFound, err == nil && !ok:
		return rec, errs.New(errs.CodeNotFound, "no actor is named %q in namespace %q", r.Name, r.Namespace)
	case err != nil:
		return rec, err
	}
	return found, nil
}
