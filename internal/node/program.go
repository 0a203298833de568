package node

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/internal/safefs"
	"mobula/raylet/pool"
	"mobula/wire"
)

// program is what a job's workers run: the driver's executable, held open so that it
// stays the same when its file is replaced, or what the driver said; and of further languages what it said.
type program struct {
	exe       *os.File // nil: the node's own
	args      []string
	said      *wire.Program  // of the driver's own language; nil: exe
	others    []wire.Program // of further languages
	functions []wire.FuncInfo
	namespace string   // of actor names, for whom names none
	environ   []string // of the driver: its workers have it too
	local     bool     // the driver is in this process, and so is its environment
}

// hold opens the driver's executable, unless it said what runs instead.
func (p *program) hold(path string) error {
	if p.said != nil {
		return nil
	}
	var err error
	if p.exe, err = os.Open(path); err != nil {
		return errs.New(errs.CodeRuntimeSetup, "the driver's executable, which its workers run too, cannot be opened: %v", err)
	}
	return nil
}

func (p program) close() {
	if p.exe != nil {
		_ = p.exe.Close() // only ever read
	}
}

// of is what the driver said of a language; nil where its own executable serves, or nothing does.
func (p program) of(language string) *wire.Program {
	if p.said != nil && p.said.Language == language {
		return p.said
	}
	for i := range p.others {
		if p.others[i].Language == language {
			return &p.others[i]
		}
	}
	return nil
}

// languages is what the pool must know of it.
func (p program) languages() []pool.Program {
	own := pool.Program{Language: wire.LangGo}
	if p.said != nil {
		own = pool.Program{Language: p.said.Language, Single: p.said.Single}
	}
	out := []pool.Program{own}
	for _, o := range p.others {
		out = append(out, pool.Program{Language: o.Language, Single: o.Single})
	}
	return out
}

// checkPrograms refuses what a driver says of its workers' programs where it cannot be.
func checkPrograms(own *wire.Program, others []wire.Program) error {
	known := map[string]bool{wire.LangGo: own == nil}
	all := others
	if own != nil {
		all = slices.Concat([]wire.Program{*own}, others)
	}
	for _, p := range all {
		switch {
		case p.Language != wire.LangGo && p.Language != wire.LangPython:
			return errs.New(errs.CodeInvalid, "programs of language %q: this node runs those of %q and %q", p.Language, wire.LangGo, wire.LangPython)
		case known[p.Language]:
			return errs.New(errs.CodeInvalid, "two programs of language %q: want one", p.Language)
		case len(p.Args) == 0:
			return errs.New(errs.CodeInvalid, "the driver says that its workers run a %s program, and not which: Program.Args is empty", p.Language)
		}
		known[p.Language] = true
	}
	return nil
}

func (n *Node) setProgram(job ids.JobID, p program) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.programs[job].close()
	n.programs[job] = p
}

func (n *Node) programOf(job ids.JobID) program {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p, ok := n.programs[job]; ok {
		return p
	}
	return program{functions: registry.List()} // its driver is gone: its workers run this program
}

func (n *Node) dropProgram(job ids.JobID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.programs[job].close()
	delete(n.programs, job)
}

// secretName is the file of a kept node's secret.
const secretName = "secret"

// secretOf gives the node's secret; a kept node's is in its directory.
func secretOf(dir string, keep bool) ([]byte, error) {
	path := filepath.Join(dir, secretName)
	if keep {
		if b, err := safefs.ReadFile(path); err == nil && len(b) == 32 {
			return b, nil
		}
	}
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		return nil, err
	}
	if keep {
		if err := safefs.WriteFile(path, b, 0o600); err != nil {
			return nil, errs.New(errs.CodeInvalid, "node directory: %v", err)
		}
	}
	return b, nil
}

// token is what a driver proves with that a job is its own, after the node restarted too:
// a MAC under the secret in the node's directory.
func (n *Node) token(job ids.JobID, client ids.ClientID) []byte {
	mac := hmac.New(sha256.New, n.secret)
	b := make([]byte, 0, 16)
	if job <= math.MaxUint32 { // as release 0.4 wrote it, whose drivers may come back
		b = binary.BigEndian.AppendUint32(b, uint32(job))
	} else {
		b = binary.BigEndian.AppendUint64(b, uint64(job))
	}
	mac.Write(binary.BigEndian.AppendUint64(b, uint64(client)))
	return mac.Sum(nil)
}

func tokenMatches(want, got []byte) bool { return hmac.Equal(want, got) }

// newToken is what a worker process proves with that it is the one that was started.
func newToken() []byte {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails: crypto/rand says so
	return b
}
