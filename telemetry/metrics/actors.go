package metrics

import (
	"encoding/hex"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"mobula/raylet/owner"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// Actors are the metrics of actors by class: restarts, how calls end, and how long they take. The first maxClasses
// classes have names of their own, further ones are summed as "other".
type Actors struct {
	restarts *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	ended    *prometheus.CounterVec

	mu      sync.Mutex
	classes map[string]*class // guarded by mu: by name
	byFunc  map[string]*class // guarded by mu: by the name of the method, at most maxMethods
}

type class struct {
	name     string
	restarts prometheus.Counter
	seconds  callTimes
	ended    [16]prometheus.Counter // by the state in which calls end
}

type callTimes interface {
	prometheus.Observer
	prometheus.ExemplarObserver
}

const (
	maxClasses = 64
	maxMethods = 1 << 12
)

func newActors() *Actors {
	return &Actors{
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mobula_actor_restarts_total", Help: "Restarts of actors, by class, whether they were charged or not.",
		}, []string{"class"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mobula_actor_call_seconds", Help: "Time from a call's arrival at its node to its end, by the actor's class; where many go straight, of some of them.",
			Buckets: []float64{1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1, 3, 10, 30, 100},
		}, []string{"class"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mobula_actor_calls_total", Help: "Calls of actors that have ended, by the actor's class and the state in which they did.",
		}, []string{"class", "state"}),
		classes: make(map[string]*class), byFunc: make(map[string]*class),
	}
}

// Class is the name of an actor's class in the metrics; o are the options of its creation.
func (a *Actors) Class(o *wire.TaskOptions) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.class(nameOf(o)).name
}

// Record takes an owner's changes.
func (a *Actors) Record(changes []owner.Transition) {
	for i := range changes {
		ch := &changes[i]
		switch {
		case ch.Spec.Kind == wire.TaskActorCreate && ch.Restart:
			a.mu.Lock()
			a.class(nameOf(ch.Spec.Opts)).restarts.Inc()
			a.mu.Unlock()
		case ch.Spec.Kind == wire.TaskActorCall && ch.State.Terminal():
			a.called(ch)
		}
	}
}

func (a *Actors) called(ch *owner.Transition) {
	c := a.ofMethod(ch.Spec.Opts)
	c.ended[ch.State&15].Add(float64(max(1, ch.Count)))
	if ch.Count > 0 || ch.Took < 0 || ch.State == task.Cancelled {
		return
	}
	if !ch.Spec.Trace.Sampled() {
		c.seconds.Observe(ch.Took.Seconds())
		return
	}
	c.seconds.ObserveWithExemplar(ch.Took.Seconds(), prometheus.Labels{"trace_id": hex.EncodeToString(ch.Spec.Trace.TraceID[:])})
}

func (a *Actors) ofMethod(o *wire.TaskOptions) *class {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.byFunc[o.Func]; c != nil {
		return c
	}
	name := nameOf(o)
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	c := a.class(name)
	if len(a.byFunc) < maxMethods {
		a.byFunc[o.Func] = c
	}
	return c
}

// class finds one by its name. mu is held.
func (a *Actors) class(name string) *class {
	c := a.classes[name]
	if c == nil && len(a.classes) >= maxClasses {
		name = other
		c = a.classes[name]
	}
	if c == nil {
		c = &class{name: name, restarts: a.restarts.WithLabelValues(name), seconds: a.seconds.WithLabelValues(name).(callTimes)}
		for _, s := range task.States() {
			if s.Terminal() {
				c.ended[s&15] = a.ended.WithLabelValues(name, s.String())
			}
		}
		a.classes[name] = c
	}
	return c
}

// nameOf is the function's name; for a Python function, py:name:hash, it is the name in the program, which may have
// any characters.
func nameOf(o *wire.TaskOptions) string {
	if _, name, ok := strings.Cut(o.Func, ":"); ok {
		if i := strings.LastIndexByte(name, ':'); i > 0 {
			return name[:i]
		}
	}
	return o.Func
}
