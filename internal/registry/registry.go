package registry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"mobula/internal/client"
	"mobula/internal/ids"
	"mobula/wire"
)

// Input is one argument of a call. With InPlace, Value.Data lies in the node's segment: it is
// read-only and valid until the call returns. Else it came in a message, which others in this process may
// have too, and nothing keeps a function from writing to it: a function gets a copy. Release, where not nil,
// gives it back earlier; calling it again does nothing.
type Input struct {
	Value   wire.Value
	InPlace bool
	Release func()
}

// Output is one result, encoded or ready to be encoded. Exactly one of Inline, Fill and Buffer is set, or none
// where Size is 0.
type Output struct {
	Meta []byte
	Refs []ids.ObjectID
	Size int // bytes

	Inline []byte           // the bytes, if they are encoded already (len == Size)
	Fill   func(dst []byte) // else: writes exactly Size bytes into dst
	Buffer *client.Buffer   // else: they are in the segment already

	// Keep is held until the result was reported: it keeps the handles of Refs from being collected. May be nil.
	Keep any
}

// Call is one call, as the executor makes it. The executor owns the struct and Inputs; they are valid until the
// call returns.
type Call struct {
	Inputs   []Input
	Instance any // of a method: the actor
	// Emit sends a stream's next item. It blocks while the consumer is as far behind as the options allow, and
	// fails if the task is cancelled or has returned.
	Emit func(Output) error
	// Drops says that nobody wants the results: they need not be encoded.
	Drops bool
	// Room is memory for the bytes of a single small result; nil: there is none.
	Room []byte

	single [1]Output
}

// Single is memory for a single result.
func (c *Call) Single() []Output { return c.single[:] }

// Function is a registered function, actor constructor or method.
type Function struct {
	Name      string
	Signature uint64
	Kind      wire.TaskKind
	Method    bool
	// Invoke decodes the inputs, calls the function and gives its results. The second
	// result is the instance that an actor's constructor made.
	Invoke func(ctx context.Context, c *Call) ([]Output, any, error)
}

var table struct { // guarded by mu; written while packages initialise
	mu     sync.RWMutex
	byName map[string]*Function
}

// Register adds f. It panics if f has no name or no Invoke, if the name belongs to the runtime or to Python, or if it
// is taken by another package of the program.
func Register(f *Function) {
	if f == nil || f.Name == "" || f.Invoke == nil {
		panic("mobula: a registered function needs a name and a body")
	}
	if strings.HasPrefix(f.Name, wire.SystemPrefix) {
		panic(fmt.Sprintf("mobula: function %q: names that begin with %q are the runtime's own; give it another", f.Name, wire.SystemPrefix))
	}
	if wire.Language(f.Name) != wire.LangGo {
		panic(fmt.Sprintf("mobula: function %q: names that begin with %q are Python's", f.Name, wire.PythonPrefix))
	}
	table.mu.Lock()
	defer table.mu.Unlock()
	if _, dup := table.byName[f.Name]; dup {
		panic(fmt.Sprintf("mobula: function %q is registered twice: give one of them another name", f.Name))
	}
	if table.byName == nil {
		table.byName = make(map[string]*Function)
	}
	table.byName[f.Name] = f
}

// Lookup finds a function by its name.
func Lookup(name string) (*Function, bool) {
	table.mu.RLock()
	defer table.mu.RUnlock()
	f, ok := table.byName[name]
	return f, ok
}

// maxNames bounds the names that an error lists.
const maxNames = 30

// Names lists the names of the functions, for an error.
func Names() string {
	fs := List()
	names := make([]string, 0, maxNames+1)
	for _, f := range fs {
		if len(names) == maxNames {
			names = append(names, fmt.Sprintf("and %d more", len(fs)-maxNames))
			break
		}
		names = append(names, f.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// List gives name and signature of every function, sorted by name.
func List() []wire.FuncInfo {
	table.mu.RLock()
	defer table.mu.RUnlock()
	out := make([]wire.FuncInfo, 0, len(table.byName))
	for _, f := range table.byName {
		out = append(out, wire.FuncInfo{Name: f.Name, Signature: f.Signature})
	}
	slices.SortFunc(out, func(a, b wire.FuncInfo) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
