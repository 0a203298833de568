package graph

import (
	"cmp"
	"slices"
	"strings"
)

// Annotations are a user's settings for single tasks, as in Dask.
type Annotations struct {
	Workers     []string         // names of the workers that may run it; none: any
	AllowOthers bool             // if none of Workers is there, any other may run it
	Resources   map[string]int64 // a worker must have as much; the worker bounds how many run at once
	Retries     int              // how often it runs again after a retriable error: 0 to 255
}

func (a *Annotations) restricts() bool {
	return a != nil && (len(a.Workers) > 0 || len(a.Resources) > 0)
}

// Task is one task of a graph as New takes it.
type Task struct {
	Key      string
	Deps     []int32 // indices of the tasks whose results it takes; a repeated one counts once
	Group    string  // Dask's TaskGroup: the key's name without its index; "": KeyGroup(Key)
	Producer bool    // Dask's data_producer: it makes data from outside the graph
	Priority int32   // the user's: a higher one runs first, whatever the order says
	Ann      *Annotations
}

// Graph is a task graph. It never changes, so several cores may share one.
type Graph struct {
	tasks  []Task
	rank   []int32 // a permutation: the task of rank 0 is preferred first
	byRank []int32 // the inverse
	wanted []int32

	up     csr // dependents of each task
	deps   csr
	group  []int32 // group index of each task
	groups []group
	kinds  []string // prefixes
}

// group is a TaskGroup: tasks of one collection's layer.
type group struct {
	name     string
	kind     int32 // index of its prefix
	size     int32
	deps     int32 // how many other groups it depends on; large: at least bigDeps
	depTasks int64 // how many tasks those groups have
}

// csr is a list of lists in two slices (compressed sparse rows).
type csr struct {
	off  []int32
	list []int32
}

func (c *csr) of(i int32) []int32 { return c.list[c.off[i]:c.off[i+1]] }

// New checks tasks and makes a graph of them. order gives each task's place in the static order (dask.order; 0
// runs first); nil means the order of the slice. wanted names the tasks whose results are asked for.
func New(tasks []Task, order []int32, wanted []int32) (*Graph, error) {
	g := &Graph{tasks: tasks, wanted: slices.Clone(wanted)}
	if err := g.check(order); err != nil {
		return nil, err
	}
	g.link()
	if path := g.cycle(); path != nil {
		return nil, &CycleError{Path: path}
	}
	g.setRanks(order)
	g.setGroups()
	return g, nil
}

// Len is the number of tasks.
func (g *Graph) Len() int { return len(g.tasks) }

// Tasks gives the tasks as New was given them. The slice is the graph's.
func (g *Graph) Tasks() []Task { return g.tasks }

// Key gives a task's key.
func (g *Graph) Key(t int32) string { return g.tasks[t].Key }

// Deps gives what a task depends on, and Dependents what depends on it. The slices are the graph's.
func (g *Graph) Deps(t int32) []int32 { return g.deps.of(t) }

// Dependents gives the tasks that take t's result.
func (g *Graph) Dependents(t int32) []int32 { return g.up.of(t) }

// Group gives the name of a task's group.
func (g *Graph) Group(t int32) string { return g.groups[g.group[t]].name }

// Rank gives a task's place in the order, user priorities applied.
func (g *Graph) Rank(t int32) int32 { return g.rank[t] }

// Wanted gives the tasks whose results were asked for when the graph was made.
func (g *Graph) Wanted() []int32 { return g.wanted }

func (g *Graph) link() {
	n := len(g.tasks)
	total := 0
	for i := range g.tasks {
		total += len(g.tasks[i].Deps)
	}
	g.deps = csr{off: make([]int32, n+1), list: make([]int32, 0, total)}
	g.up = csr{off: make([]int32, n+1)}
	for i := range g.tasks {
		start := len(g.deps.list)
		for _, d := range g.tasks[i].Deps {
			if !slices.Contains(g.deps.list[max(start, len(g.deps.list)-fewDeps):], d) {
				g.deps.list = append(g.deps.list, d)
			}
		}
		if own := g.deps.list[start:]; len(own) > fewDeps { // sort a long list to find duplicates
			slices.Sort(own)
			g.deps.list = g.deps.list[:start+len(slices.Compact(own))]
		}
		g.deps.off[i+1] = int32(len(g.deps.list))
		for _, d := range g.deps.list[start:] {
			g.up.off[d+1]++
		}
	}
	for i := range n {
		g.up.off[i+1] += g.up.off[i]
	}
	g.up.list = make([]int32, len(g.deps.list))
	next := slices.Clone(g.up.off[:n])
	for i := range int32(n) {
		for _, d := range g.deps.of(i) {
			g.up.list[next[d]] = i
			next[d]++
		}
	}
}

const fewDeps = 16

func (g *Graph) setRanks(order []int32) {
	n := len(g.tasks)
	g.byRank = make([]int32, n)
	for i := range g.byRank {
		g.byRank[i] = int32(i)
	}
	slices.SortFunc(g.byRank, func(a, b int32) int {
		x, y := &g.tasks[a], &g.tasks[b]
		if x.Priority != y.Priority {
			return cmp.Compare(y.Priority, x.Priority)
		}
		if order != nil && order[a] != order[b] {
			return cmp.Compare(order[a], order[b])
		}
		return cmp.Compare(a, b)
	})
	g.rank = make([]int32, n)
	for r, t := range g.byRank {
		g.rank[t] = int32(r)
	}
}

// bigDeps is the bound of the heuristic for root tasks: a group that depends on that many tasks or groups has no
// root tasks.
const bigDeps = 5

func (g *Graph) setGroups() {
	index, kinds := make(map[string]int32), make(map[string]int32)
	g.group = make([]int32, len(g.tasks))
	last, lastID := "", int32(-1)
	for i := range g.tasks {
		name := g.tasks[i].Group
		if name == "" {
			name = KeyGroup(g.tasks[i].Key)
		}
		if lastID < 0 || name != last {
			id, ok := index[name]
			if !ok {
				id = int32(len(g.groups))
				index[name] = id
				kind := KeyPrefix(name)
				k, ok := kinds[kind]
				if !ok {
					k = int32(len(g.kinds))
					kinds[kind] = k
					g.kinds = append(g.kinds, kind)
				}
				g.groups = append(g.groups, group{name: name, kind: k})
			}
			last, lastID = name, id
		}
		g.group[i] = lastID
		g.groups[lastID].size++
	}
	g.countGroupDeps()
}

func (g *Graph) countGroupDeps() {
	seen := make([][]int32, len(g.groups)) // distinct groups that a group depends on, at most bigDeps
	for i := range g.tasks {
		gi := g.group[i]
		for _, d := range g.deps.of(int32(i)) {
			if gd := g.group[d]; gd != gi && len(seen[gi]) < bigDeps && !slices.Contains(seen[gi], gd) {
				seen[gi] = append(seen[gi], gd)
			} else if gd == gi {
				g.groups[gi].depTasks = int64(g.groups[gi].size) // tasks of a group that depends on itself are not roots
			}
		}
	}
	for i, s := range seen {
		g.groups[i].deps += int32(len(s))
		for _, d := range s {
			g.groups[i].depTasks += int64(g.groups[d].size)
		}
	}
}

// KeyGroup is the name of the group that Dask puts a key in: of "('sum-ab12', 0, 1)" it is
// "sum-ab12", of a plain key its prefix.
func KeyGroup(key string) string {
	if strings.HasPrefix(key, "(") {
		name, _, _ := strings.Cut(key, ",")
		return strings.Trim(name, `()"'`)
	}
	return KeyPrefix(key)
}

// KeyPrefix is Dask's key_split of a name: the words before its token or index.
func KeyPrefix(name string) string {
	words := strings.Split(name, "-")
	n := 1
	for n < len(words) && isWord(words[n]) {
		n++
	}
	return strings.Trim(strings.Join(words[:n], "-"), `_'()"`)
}

// isWord tells whether a part of a name is a word and not a token of eight hexadecimal digits.
func isWord(s string) bool {
	if s == "" || len(s) == 8 && strings.Trim(s, "abcdef") == "" {
		return false
	}
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return true
}
