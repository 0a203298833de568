package node

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/fxamacker/cbor/v2"

	"mobula/gcs/directory"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/inspect"
	"mobula/internal/state"
	"mobula/raylet/internode"
	"mobula/wire"
)

// The bounds of cold requests: they must not disturb the tasks.
const (
	maxColdRunning = 4                       // at once, of all clients
	maxColdWaiting = 2 * wire.RequestsAtOnce // of one client, unanswered
	coldTimeout    = time.Minute
)

// handler answers a cold request: a body in, a reply out, both CBOR.
type handler func(*requests, context.Context, []byte) (any, error)

// handlers are those of clients.
var handlers = map[string]handler{
	state.MethodPing:       handle((*requests).ping),
	state.MethodStop:       handle((*requests).stopNode),
	state.MethodMetrics:    handle((*requests).metricsText),
	state.MethodStatus:     handle((*requests).status),
	state.MethodTasks:      list(state.MethodTasks, state.TaskRows, (*inspect.Inspector).Tasks),
	state.MethodActors:     list(state.MethodActors, state.ActorRows, (*inspect.Inspector).Actors),
	state.MethodObjects:    list(state.MethodObjects, state.ObjectRows, (*inspect.Inspector).Objects),
	state.MethodWorkers:    list(state.MethodWorkers, state.WorkerRows, (*inspect.Inspector).Workers),
	state.MethodGraphs:     list(state.MethodGraphs, state.GraphRows, (*inspect.Inspector).Graphs),
	state.MethodJobs:       list(state.MethodJobs, state.JobRows, (*inspect.Inspector).Jobs),
	state.MethodNodes:      handle((*requests).nodes),
	state.MethodComponents: list(state.MethodComponents, state.ComponentRows, (*inspect.Inspector).Components),
	state.MethodMemory:     handle((*requests).memory),
	state.MethodUsage:      look((*inspect.Inspector).Usage),
	state.MethodExplain:    handle((*requests).explain),
	state.MethodTimeline:   handle((*requests).timeline),
	state.MethodLogs:       handle((*requests).logs),
	state.MethodCancel:     handle((*requests).cancel),
	state.MethodKill:       handle((*requests).kill),
	state.MethodActorGet: handle(func(r *requests, ctx context.Context, in state.ActorRequest) (state.ActorReply, error) {
		return r.actorGet(ctx, 0, in)
	}),
	state.MethodUncounted: handle((*requests).uncounted),

	state.MethodTokenMake:   wiredTo((*wired).makeToken),
	state.MethodTokenList:   wiredTo((*wired).listTokens),
	state.MethodTokenRevoke: wiredTo((*wired).revokeToken),

	state.MethodSecurityCheck: handle((*requests).security),
	state.MethodRevoke:        wiredTo((*wired).revoke),
	state.MethodRotate:        wiredTo((*wired).rotateKey),

	state.MethodSpans: handle((*requests).spans),
	state.MethodSecede: handle(func(r *requests, ctx context.Context, in state.SecedeRequest) (empty, error) {
		return r.graphs.secede(ctx, in)
	}),
	state.MethodFetch: handle(func(r *requests, ctx context.Context, in state.FunctionRequest) (empty, error) {
		return r.blobs.getFunction(ctx, in)
	}),
	state.MethodOffer: handle(func(r *requests, ctx context.Context, in state.FunctionRequest) (empty, error) {
		return r.blobs.putFunction(ctx, in)
	}),
}

// answers are the handlers of questions of other nodes. They change nothing, but for the spans that are exported and what is to be ended, and ask no third
// node.
var answers = map[string]handler{
	state.MethodStatus:     look((*inspect.Inspector).Status),
	state.MethodTasks:      placed((*inspect.Inspector).Tasks),
	state.MethodActors:     placed((*inspect.Inspector).Actors),
	state.MethodObjects:    placed((*inspect.Inspector).Objects),
	state.MethodWorkers:    placed((*inspect.Inspector).Workers),
	state.MethodGraphs:     placed((*inspect.Inspector).Graphs),
	state.MethodJobs:       placed((*inspect.Inspector).Jobs),
	state.MethodComponents: placed((*inspect.Inspector).Components),
	state.MethodMemory: handle(func(r *requests, ctx context.Context, q state.Query) (nodeMemory, error) {
		return placedMemory(ctx, r.inspect, q)
	}),
	state.MethodExplain: look((*inspect.Inspector).Explain),
	state.MethodLogs:    look((*inspect.Inspector).Logs),
	state.MethodSpans:   handle((*requests).spans),
	state.MethodCancel:  look((*inspect.Inspector).Cancel),
	state.MethodKill:    look((*inspect.Inspector).Kill),
	methodRecording:     look((*inspect.Inspector).Record),
	methodClass:         look((*inspect.Inspector).Class),
	methodLoad:          look((*inspect.Inspector).Load),

	state.MethodSecurityCheck: handle((*requests).securityHere),
	state.MethodUncounted:     look((*inspect.Inspector).Uncounted),
}

// empty is the body of a request that says nothing.
type empty = inspect.Empty

// look makes a handler of what inspection answers.
func look[In, Out any](f func(*inspect.Inspector, context.Context, In) (Out, error)) handler {
	return handle(func(r *requests, ctx context.Context, in In) (Out, error) { return f(r.inspect, ctx, in) })
}

// wiredTo makes a handler of what the node does as one of its cluster.
func wiredTo[In, Out any](f func(*wired, context.Context, In) (Out, error)) func(*requests, context.Context, []byte) (any, error) {
	return handle(func(r *requests, ctx context.Context, in In) (Out, error) { return f(r.wired, ctx, in) })
}

// handle makes a handler of a method with typed request and reply.
func handle[In, Out any](f func(*requests, context.Context, In) (Out, error)) handler {
	return func(r *requests, ctx context.Context, body []byte) (any, error) {
		var in In
		if len(body) > 0 {
			if err := strict.Unmarshal(body, &in); err != nil {
				return nil, errs.New(errs.CodeInvalid, "the request's body: %v", err)
			}
		}
		return f(r, ctx, in)
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
func (r *requests) cold(s *session, m *wire.Request) {
	if waiting := s.cold.Add(1); waiting > maxColdWaiting {
		s.cold.Add(-1)
		reply(s, m, nil, errs.New(errs.CodeBacklog, "%s: %d requests of this client wait already; wait for answers", m.Method, waiting-1))
		return
	}
	r.work.Go(func() {
		out, err := r.answer(s, m)
		s.cold.Add(-1)
		reply(s, m, out, err)
		if m.Method == state.MethodStop && err == nil {
			r.passStop() // once it is answered: what stops closes the connections
		}
	})
}

func reply(s *session, m *wire.Request, body []byte, err error) {
	s.Push(&wire.Reply{Req: m.Req, Body: body, Err: errs.From(err)})
	s.Flush()
}

// answer answers a client's request. What a worker of another node's job has traced is that job's: one node exports a trace, by one clock. Who looks for an
// actor has asked its job's owner for what it did before.
func (r *requests) answer(s *session, m *wire.Request) ([]byte, error) {
	h := handlers[m.Method]
	if home := s.job.Home(); m.Method == state.MethodSpans && s.job != 0 && home != r.numbers.Row().Home {
		h = handle(func(r *requests, ctx context.Context, in state.SpansRequest) (state.SpansReply, error) {
			return r.spansOf(ctx, home, in)
		})
	} else if m.Method == state.MethodActorGet {
		h = handle(func(r *requests, ctx context.Context, in state.ActorRequest) (state.ActorReply, error) {
			return r.actorGet(ctx, s.job, in)
		})
	}
	return r.run(h, r.running, m.Method, m.Body)
}

// answerNode answers another node's question. It waits for no client's request: those may wait for other nodes.
func (r *requests) answerNode(m *internode.Ask) ([]byte, error) {
	return r.run(answers[m.Method], r.questions.answering, m.Method, m.Body)
}

// run runs a handler when its turn has come. One that panics fails its request and nothing else.
func (r *requests) run(h handler, running chan struct{}, method string, in []byte) (body []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errs.New(errs.CodePanic, "%s: the node's handler panicked: %v", method, p)
			r.cfg.Logger.Error("a request's handler panicked", "method", method, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	if h == nil {
		return nil, errs.New(errs.CodeNotFound, "node %s knows no request %q", r.cfg.Name, method)
	}
	ctx, cancel := context.WithTimeout(r.life, coldTimeout)
	defer cancel()
	select {
	case running <- struct{}{}:
		defer func() { <-running }()
	case <-ctx.Done():
		return nil, r.late(ctx, method)
	}
	out, err := h(r, ctx, in)
	if err != nil {
		if ctx.Err() != nil {
			return nil, r.late(ctx, method)
		}
		return nil, err
	}
	if body, err = cbor.Marshal(out); err != nil {
		return nil, fmt.Errorf("%s: the reply: %w", method, err)
	}
	if len(body) > mostAnswer {
		return nil, errs.New(errs.CodeInvalid, "%s: the reply has %d bytes, at most %d can be sent; ask for fewer rows", method, len(body), mostAnswer)
	}
	return body, nil
}

// late says why a request was given up.
func (r *requests) late(ctx context.Context, method string) error {
	if r.life.Err() != nil {
		return errs.New(errs.CodeShutdown, "node %s is stopping", r.cfg.Name)
	}
	return errs.New(errs.CodeDeadline, "%s: not answered in %v: the node is busy: %v", method, coldTimeout, context.Cause(ctx))
}

func (r *requests) spans(ctx context.Context, in state.SpansRequest) (state.SpansReply, error) {
	return r.obs.TakeSpans(ctx, in)
}

func (r *requests) ping(context.Context, empty) (state.Pong, error) {
	return state.Pong{Node: r.cfg.Name, PID: os.Getpid(), Time: r.clock.Now()}, nil
}

// stopNode agrees to end, if whoever runs the node listens to that.
func (r *requests) stopNode(_ context.Context, in state.StopRequest) (state.Stopping, error) {
	if r.stop.Load() == nil {
		return state.Stopping{}, errs.New(errs.CodePermission, "node %s is part of a program, process %d: end that", r.cfg.Name, os.Getpid())
	}
	r.cfg.Logger.Info("the node was asked to stop", "reason", in.Reason)
	return state.Stopping{Node: r.cfg.Name, PID: os.Getpid()}, nil
}

// passStop tells whoever runs the node, once.
func (r *requests) passStop() {
	c := *r.stop.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

// requested is closed when a tool asks the node to stop. A node that nobody calls it of,
// one inside a program, refuses to be stopped from elsewhere.
func (r *requests) requested() <-chan struct{} {
	c := make(chan struct{})
	if r.stop.CompareAndSwap(nil, &c) && r.failed.Load() != nil {
		r.passStop()
	}
	return *r.stop.Load()
}

func (r *requests) metricsText(context.Context, empty) (state.Text, error) {
	b, err := r.obs.Set().Text()
	return state.Text{Body: b}, err
}

// actorGet finds a named actor in the control plane for a program of a job, unless that, or another one, has ended it: its row may be there still.
func (r *requests) actorGet(ctx context.Context, job ids.JobID, in state.ActorRequest) (state.ActorReply, error) {
	rec, err := r.control.named(ctx, in)
	if err != nil {
		return state.ActorReply{}, err
	}
	id, err := parseActor(rec.Actor)
	if err != nil {
		return state.ActorReply{}, err
	}
	if gives, err := r.inspect.GivesUp(ctx, job, directory.Name{Namespace: rec.Namespace, Name: rec.Name}, id); err != nil {
		return state.ActorReply{}, err
	} else if gives {
		return state.ActorReply{}, errs.New(errs.CodeNotFound, "no actor is named %q in namespace %q: actor %v, which had the name, is ending", rec.Name, rec.Namespace, id)
	}
	return state.ActorReply{Actor: ids.TaskID(id).Bytes(), Type: rec.Type, JobDir: r.files.Shared(rec.Job), MaxPendingCalls: rec.MaxPendingCalls}, nil
}
