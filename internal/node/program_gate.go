package node

import (
	"slices"

	"mobula/raylet/sched"
	"mobula/wire"
)

// programGate holds back what an owner of another node tells this node's scheduler, until what the job's workers run is here. So nothing is reserved for workers that
// cannot start yet. It decides, and does nothing: the agent has one, and whoever calls it carries out what it gives.
type programGate struct {
	own    string           // the driver's language: without its program nothing passes
	stages map[string]stage // of the languages that the job has a program for
	held   []sched.Event    // in order
}

// stage is how far a language's program is.
type stage uint8

const (
	absent stage = iota
	coming
	here
)

// newProgramGate makes the gate of a job with programs of some languages, the driver's own first.
func newProgramGate(languages []string) *programGate {
	g := &programGate{own: languages[0], stages: make(map[string]stage)}
	for _, l := range languages {
		g.stages[l] = absent
	}
	return g
}

// language is what a message needs the program of.
func (g *programGate) language(ev sched.Event) string {
	if w, ok := ev.(sched.Want); ok && w.Opts != nil {
		if l := wire.Language(w.Opts.Func); g.has(l) {
			return l
		}
	}
	return g.own // the pool says that a job has no program for a language
}

func (g *programGate) has(language string) bool {
	_, ok := g.stages[language]
	return ok
}

func (g *programGate) open(language string) bool {
	return g.stages[g.own] == here && g.stages[language] == here
}

// pass takes a message. It gives back one that goes on, or the languages whose programs are to come here now.
func (g *programGate) pass(ev sched.Event) (on []sched.Event, get []string) {
	if g.open(g.language(ev)) {
		return []sched.Event{ev}, nil
	}
	if w, ok := ev.(sched.Want); ok {
		at := slices.IndexFunc(g.held, func(h sched.Event) bool { old, ok := h.(sched.Want); return ok && old.Key == w.Key })
		if at >= 0 {
			g.held[at] = ev // it replaces the one before
			return nil, g.need(w)
		}
		get = g.need(w)
	}
	g.held = append(g.held, ev)
	return nil, get
}

// begin gives the languages whose programs are to come here first.
func (g *programGate) begin() []string { return g.get(g.own) }

// need gives the languages whose programs a want lacks, if it wants anything.
func (g *programGate) need(w sched.Want) []string {
	if w.Backlog == 0 {
		return nil
	}
	return append(g.get(g.own), g.get(g.language(w))...)
}

func (g *programGate) get(language string) []string {
	if g.stages[language] != absent {
		return nil
	}
	g.stages[language] = coming
	return []string{language}
}

// arrived says that a language's program is here. It gives what goes on.
func (g *programGate) arrived(language string) (on []sched.Event) {
	g.stages[language] = here
	g.held = slices.DeleteFunc(g.held, func(ev sched.Event) bool {
		pass := g.open(g.language(ev))
		if pass {
			on = append(on, ev)
		}
		return pass
	})
	return on
}

// failed says that a language's program could not be brought here. It gives what is to be refused; the next want has it tried again.
func (g *programGate) failed(language string) (refused []sched.Want) {
	g.stages[language] = absent
	g.held = slices.DeleteFunc(g.held, func(ev sched.Event) bool {
		lacks := language == g.own || language == g.language(ev)
		if w, ok := ev.(sched.Want); ok && lacks && w.Backlog > 0 {
			refused = append(refused, w)
		}
		return lacks
	})
	return refused
}
