package node

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/raylet/pool"
	"mobula/raylet/pool/proc"
	"mobula/wire"
)

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

// environment is what its workers get.
func (p program) environment() []string {
	if p.local {
		return os.Environ()
	}
	return p.environ
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

func (t *programs) set(job ids.JobID, p program) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byJob == nil {
		t.byJob = make(map[ids.JobID]program)
	}
	t.byJob[job].close()
	t.byJob[job] = p
}

func (t *programs) of(job ids.JobID) program {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := t.byJob[job]; ok {
		return p
	}
	return program{functions: registry.List()} // its driver is gone: its workers run this program
}

func (t *programs) drop(job ids.JobID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byJob[job].close()
	delete(t.byJob, job)
}

// update changes what is known of a job's workers; a job that is over has none.
func (t *programs) update(job ids.JobID, change func(*program)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.byJob[job]
	change(&p)
	if ok {
		t.byJob[job] = p
	} else {
		p.close()
	}
}

// executable is what a job's workers of a language run: what its driver said; else the driver's program, by a
// descriptor of the caller's; or this program where the driver is in this process. On another node a Go program is always one by a descriptor.
func (t *programs) executable(job ids.JobID, language string) (proc.Program, error) {
	t.mu.Lock()
	defer t.mu.Unlock() // a driver that comes back brings another descriptor, and this one is closed
	p := t.byJob[job]
	env := p.environment()
	out := proc.Program{Args: p.args, Env: env}
	if said := p.of(language); said != nil {
		out.Exe, out.Args, out.Template = said.Args[0], said.Args[1:], said.Template
	}
	if language == wire.LangPython && p.modules != "" {
		out.Env = append(slices.Clone(env), wire.EnvModules+"="+p.modules)
	}
	if p.exe == nil || language != wire.LangGo {
		return out, nil
	}
	fd, err := unix.FcntlInt(p.exe.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return proc.Program{}, err
	}
	out.File = os.NewFile(uintptr(fd), p.exe.Name())
	return out, nil
}
