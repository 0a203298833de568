package objectstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mobula/internal/ids"
	"mobula/internal/transcript"
	"mobula/objectstore/spill"
	"mobula/wire"
)

// TestTranscripts tells the stories of testdata/transcripts (package transcript): events for the stores of one or more nodes, and what these then ask
// for. A world carries that out: memory comes at once, disk and network do what they have to do when the story says so.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(*testing.T) func(transcript.Block) []string {
		s := &story{names: make(map[ids.ObjectID]string), spilled: make(map[uint64]string)}
		return func(b transcript.Block) []string {
			s.Block, s.said = b, nil
			s.run()
			s.memory()
			return s.said
		}
	})
}

// story is nodes whose objects, clients and tasks have names.
type story struct {
	transcript.Block
	nodes   []*world
	clients []string // the n-th is client n+1
	names   map[ids.ObjectID]string
	tasks   []string
	spilled map[uint64]string // spill files, by what is in them
	said    []string
}

func (s *story) run() {
	switch s.Cmd {
	case "store": // store SIZE [nodes=N] clients=(NAME, NAME): the n-th client is of the n-th node, or of the last
		s.nodes = newNodes(s.T, s.Int("nodes", 1), testConfig(s.size(s.Word(0))))
		for i, w := range s.nodes {
			w.show = func(e Effect) { s.say(i, e) }
		}
		for i, name := range s.List("clients") {
			s.clients = append(s.clients, name)
			s.nodes[min(i, len(s.nodes)-1)].join(s.client(name))
		}
	case "leave":
		id := s.client(s.Word(0))
		w := s.node()
		for o := range w.owned {
			if o.client == id {
				delete(w.owned, o)
			}
		}
		w.step(ClientGone{id})
	case "create": // create CLIENT OBJECT SIZE
		s.node().create(s.client(s.Word(0)), s.object(1), 0, s.size(s.Word(2)), ids.TaskID{})
	case "seal": // seal CLIENT OBJECT: it was written
		s.seal()
	case "put": // put CLIENT OBJECT SIZE: create and seal
		s.node().create(s.client(s.Word(0)), s.object(1), 0, s.size(s.Word(2)), ids.TaskID{})
		s.memory()
		s.seal()
	case "get": // get CLIENT OBJECT
		s.node().get(s.client(s.Word(0)), s.object(1))
	case "unpin": // unpin CLIENT OBJECT
		s.node().unpin(s.client(s.Word(0)), s.object(1), 1)
	case "args": // args WORKER TASK OBJECT...: pin them
		var objs []ids.ObjectID
		for i := range s.Words()[2:] {
			objs = append(objs, s.object(i+2))
		}
		s.node().step(PinArgs{Job: 1, Task: s.task(1), Worker: s.client(s.Word(0)), IDs: objs})
	case "task-ends": // task-ends TASK: its arguments are unpinned
		s.node().step(UnpinArgs{Task: s.task(0)})
	case "free": // free OBJECT...
		var objs []ids.ObjectID
		for i := range s.Words() {
			objs = append(objs, s.object(i))
		}
		s.node().step(Free{objs})
	case "located": // located OBJECT SIZE on=(N, N): the owner's word
		var on []*world
		for _, n := range s.List("on") {
			on = append(on, s.nodes[s.index(n)])
		}
		s.node().tell(s.object(0), s.size(s.Word(1)), on...)
	case "node-dies": // node-dies N
		lose(s.nodes, s.nodes[s.index(s.Word(0))])
	case "disk", "network", "owner": // what was asked of it is done; an owner says that nothing was sealed
		for _, w := range s.nodes {
			jobs := w.jobs
			w.jobs = nil
			for _, j := range jobs {
				j.run()
			}
		}
	case "disk-breaks": // what was written to it cannot be read any more
		s.node().broken = spill.ErrCorrupt
	case "pass": // pass DURATION
		for _, w := range s.nodes {
			for end := w.now + int64(s.Duration(0)); ; w.step(Tick{}) {
				if w.timer == 0 || w.timer > end {
					w.now = end
					break
				}
				w.now, w.timer = max(w.now, w.timer), 0
			}
		}
	case "show": // show: what there is in bytes
		for i, w := range s.nodes {
			st := w.c.Stats()
			s.line(i, "%d of %s in memory, %s pinned, %s on disk; creates that wait: %d", st.Held/mib, bytes(st.Limit), bytes(st.Pinned), bytes(st.Spilled),
				st.WaitingCreates)
		}
	default:
		s.Unknown()
	}
}

// seal has what a client has created written and sealed.
func (s *story) seal() {
	w, id := s.node(), s.object(1)
	for _, m := range w.created {
		if m.ID == id {
			w.write(s.client(s.Word(0)), 0, m)
			w.seal(s.client(s.Word(0)), 0, m, m.Extent.Size)
			return
		}
	}
	s.Fatalf("there is no room for %s yet", s.Word(1))
}

// memory puts memory behind what was asked for.
func (s *story) memory() {
	for _, w := range s.nodes {
		for {
			i := slices.IndexFunc(w.jobs, func(j job) bool { return j.reserve })
			if i < 0 {
				break
			}
			j := w.jobs[i]
			w.jobs = slices.Delete(w.jobs, i, i+1)
			j.run()
		}
	}
}

// node is where the event goes: the first, unless node=N is said.
func (s *story) node() *world { return s.nodes[s.index(s.Text("node", "1"))] }

func (s *story) index(n string) int {
	i, err := strconv.Atoi(n)
	if err != nil || i < 1 || i > len(s.nodes) {
		s.Fatalf("%q: want the number of a node", n)
	}
	return i - 1
}

func (s *story) size(text string) uint64 {
	n, err := strconv.ParseUint(strings.TrimSuffix(text, "MiB"), 10, 32)
	if err != nil {
		s.Fatalf("%q: want so many MiB", text)
	}
	return n * mib
}

func (s *story) client(name string) ids.ClientID {
	i := slices.Index(s.clients, name)
	if i < 0 {
		s.Fatalf("%s has not joined", name)
	}
	return ids.ClientID(i + 1)
}

// object is the object that a word names. Each name is another object.
func (s *story) object(i int) ids.ObjectID {
	name := s.Word(i)
	for id, n := range s.names {
		if n == name {
			return id
		}
	}
	id := put(len(s.names) + 1)
	s.names[id] = name
	return id
}

func (s *story) task(i int) ids.TaskID {
	n := slices.Index(s.tasks, s.Word(i))
	if n < 0 {
		n = len(s.tasks)
		s.tasks = append(s.tasks, s.Word(i))
	}
	return task(n)
}

func (s *story) line(node int, format string, args ...any) {
	where := ""
	if len(s.nodes) > 1 {
		where = fmt.Sprintf("node %d: ", node+1)
	}
	s.said = append(s.said, where+s.named(fmt.Sprintf(format, args...)))
}

// named puts names in the place of ids.
func (s *story) named(text string) string {
	for id, name := range s.names {
		text = strings.ReplaceAll(text, id.String(), name)
	}
	return text
}

// say writes down an effect. What the index, the notes and the memory of the machine are told is left out.
func (s *story) say(node int, e Effect) {
	say := func(format string, args ...any) { s.line(node, format, args...) }
	switch e := e.(type) {
	case ToClient:
		s.toClient(say, s.clients[e.Client-1], e.Msg)
	case ToOwner:
		s.toOwner(say, e.Msg)
	case SpillWrite:
		var all []string
		for _, it := range e.Items {
			all = append(all, s.names[it.ID])
		}
		what := strings.Join(all, ", ")
		s.spilled[s.nodes[node].nextLoc+1] = what
		say("disk <- write %s", what)
	case SpillCopy:
		say("disk <- write %d objects anew", len(e.Objects))
	case SpillRead:
		say("disk <- read %s", s.restored(node, e.Job))
	case SpillRemove:
		for _, l := range e.Locs {
			say("disk <- remove %s", s.spilled[l.File])
		}
	case CreateFallback:
		say("disk <- a file of %s in place of memory", bytes(e.Size))
	case DropFile:
		say("disk <- remove the file in place of memory")
	case Import:
		say("node %v <- send %v", e.From, e.ID)
	case Exported:
		if e.Err != nil {
			say("node %v <- %v is not here: %v", e.To, e.ID, e.Err)
		} else {
			say("node %v <- the bytes of %v", e.To, e.ID)
		}
	case Log:
		say("log <- %s", e.Msg)
	}
}

// restored is the object that a job brings back.
func (s *story) restored(node int, job uint64) string {
	if d, ok := s.nodes[node].c.jobs[job].(*demand); ok && d.o != nil {
		return s.names[d.o.id]
	}
	return "an object"
}

func (s *story) toClient(say func(string, ...any), who string, m wire.Msg) {
	switch m := m.(type) {
	case *wire.Created:
		switch {
		case m.Err != nil:
			say("%s <- no room for %v: %v", who, m.ID, m.Err)
		case m.Extent.File != 0:
			say("%s <- write %v into a file, %s", who, m.ID, bytes(m.Extent.Size))
		default:
			say("%s <- write %v, %s", who, m.ID, bytes(m.Extent.Size))
		}
	case *wire.Resolved:
		if m.Result.Err != nil {
			say("%s <- %v cannot be read: %v", who, m.ID, m.Result.Err)
		} else {
			say("%s <- read %v in place", who, m.ID)
		}
	case *wire.MapFile:
		say("%s <- map a file", who)
	case *wire.UnmapFile:
		say("%s <- unmap a file", who)
	case *wire.Collect:
		say("%s <- collect garbage", who)
	default:
		say("%s <- %T", who, m)
	}
}

func (s *story) toOwner(say func(string, ...any), m OwnerMsg) {
	switch m := m.(type) {
	case Inventory:
		for _, l := range m.Left {
			say("owner <- was %v sealed", l.ID)
		}
	case ArgsPinned:
		var all []string
		for _, v := range m.Values {
			all = append(all, s.names[v.ID])
		}
		say("owner <- the arguments of %s are pinned: %s", s.taskName(m.Task), strings.Join(all, ", "))
	case ArgsWait:
		say("owner <- the arguments of %s wait", s.taskName(m.Task))
	case ArgsRefused:
		say("owner <- the arguments of %s cannot be pinned: %v", s.taskName(m.Task), m.Err)
	case Lost:
		say("owner <- %v is lost: %v", m.ID, m.Err)
	default:
		say("owner <- %T", m)
	}
}

func (s *story) taskName(id ids.TaskID) string {
	for i, name := range s.tasks {
		if task(i) == id {
			return name
		}
	}
	return id.String()
}

func bytes(n uint64) string {
	if n%mib == 0 {
		return fmt.Sprintf("%d MiB", n/mib)
	}
	return fmt.Sprintf("%d B", n)
}
