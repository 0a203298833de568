package node

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"mobula/internal/errs"
	"mobula/internal/node/blobdir"
	"mobula/internal/node/blobs"
	"mobula/internal/node/jobs"
	"mobula/internal/node/modules"
	"mobula/internal/safefs"
	"mobula/raylet"
	"mobula/raylet/owner"
	"mobula/raylet/pool"
	"mobula/raylet/pool/proc"
	"mobula/raylet/sched"
	"mobula/wire"
)

// arrival is what came of a language's program, or nothing if all of it is here anyhow.
type arrival struct {
	exe     *os.File // of a Go program
	modules string   // of a Python program: see program
}

// fetch has the programs of some languages brought here, beside everything else; then what waits for them goes on, or is refused.
func (l *links) fetch(a *agent, languages []string) {
	for _, language := range languages {
		l.work.Go(func() {
			var got arrival
			err := l.clearing.wait(a.life, a.job)
			if err == nil {
				got, err = l.bring(a, language)
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if err == nil {
				err = l.install(a, language, got)
			}
			switch {
			case a.closed():
			case err != nil:
				l.refuse(a, language, err)
			default:
				for _, ev := range a.gate.arrived(language) {
					l.raylet.ref.Deliver(raylet.OfJob{Job: a.job, Event: ev})
				}
			}
		})
	}
}

// bringFunction has the Python function of a class brought here, where it is wanted or may be: else its first worker would ask for it when it has a task.
func (l *links) bringFunction(a *agent, ev sched.Event) {
	w, ok := ev.(sched.Want)
	if !ok || w.Opts == nil {
		return
	}
	hash, ok := wire.PythonFunction(w.Opts.Func)
	if !ok {
		return
	}
	l.work.Go(func() {
		if l.clearing.wait(a.life, a.job) == nil && !safefs.Exists(blobdir.Path(l.blobs.functions(a.job), hash)) {
			_ = l.blobs.get(a.life, blobs.Key{Job: a.job, Kind: blobs.Function, Hash: hash}, a.job.Home()) // the worker asks again, and is told why it cannot come
		}
	})
}

// bring brings what workers of a language run to this node.
func (l *links) bring(a *agent, language string) (got arrival, err error) {
	if language == wire.LangGo {
		if a.said.OS != runtime.GOOS || a.said.Arch != runtime.GOARCH {
			return got, errs.New(errs.CodeUnschedulable, "the executable of job %v is for %s/%s, and node %s is %s/%s", a.job, a.said.OS, a.said.Arch, l.cfg.Name, runtime.GOOS, runtime.GOARCH)
		}
		got.exe, err = l.blobs.executable(a.life, a.job)
		return got, err
	}
	p := programOf(a.said)
	said := p.of(language)
	if _, err := proc.LookPath(said.Args[0], p.environ); err != nil {
		return got, errs.New(errs.CodeRuntimeSetup, "the driver of job %v runs Python %s, %s, which every node that runs its tasks must have: %v", a.job, said.Version, said.Args[0], err)
	}
	got.modules, err = l.modules(a, said.Roots)
	return got, err
}

// modules brings a Python driver's own modules here. It gives a JSON object: where the copy of each directory is.
func (l *links) modules(a *agent, roots []string) (string, error) {
	if len(roots) == 0 {
		return "", nil
	}
	zip, err := l.blobs.modules(a.life, a.job)
	if err != nil {
		return "", err
	}
	defer func() { _ = zip.Close() }() // only ever read
	dir := filepath.Join(l.files.Shared(a.job), "modules")
	if err = safefs.MakeDir(dir); err == nil {
		err = modules.Unpack(zip, dir)
	}
	if err != nil {
		return "", err
	}
	where := make(map[string]string)
	for i, root := range roots {
		where[root] = filepath.Join(dir, strconv.Itoa(i))
	}
	text, err := json.Marshal(where)
	return string(text), err
}

// install makes what came what the job's workers run. With the driver's own program the job becomes known here. a.mu is held.
func (l *links) install(a *agent, language string, got arrival) error {
	if a.closed() {
		if got.exe != nil {
			_ = got.exe.Close() // it is not run
		}
		return errOver(a)
	}
	if !l.place(a, language, got) {
		return nil
	}
	return l.jobs.ask(nil, func(q jobs.Ask) jobs.Event {
		return jobs.Hosted{Ask: q, JobStarted: pool.JobStarted{Job: a.job, Opening: a.opening, Programs: programOf(a.said).languages()}}
	})
}

// place notes what came, once the driver's own program is here, and tells whether that has come. What comes before it waits for it. a.mu is held.
func (l *links) place(a *agent, language string, got arrival) (own bool) {
	if own = language == a.gate.own; !own && !a.gate.open(a.gate.own) {
		a.early = append(a.early, early{language, got})
		return false
	}
	if own {
		l.programs.set(a.job, programOf(a.said))
	}
	for _, e := range append(a.early, early{language, got}) {
		l.programs.update(a.job, func(p *program) {
			if e.language == wire.LangGo {
				p.exe = e.exe
			} else {
				p.modules = e.modules
			}
		})
	}
	a.early = nil
	return own
}

// early is what came before the driver's own program.
type early struct {
	language string
	arrival
}

func errOver(a *agent) error { return errs.New(errs.CodeOwnerDied, "job %v is over", a.job) }

// refuse answers what waited for a program that could not be brought here. a.mu is held.
func (l *links) refuse(a *agent, language string, err error) {
	why := errs.From(err)
	if !errors.Is(err, errs.ErrUnschedulable) {
		why = errs.New(errs.CodeRuntimeSetup, "node %s cannot run the %s program of job %v: %v", l.cfg.Name, language, a.job, err)
	}
	l.limited.warn("what a job of another node runs could not be brought here", "job", a.job, "language", language, "err", why)
	for _, w := range a.gate.failed(language) {
		a.post(owner.FromSched{Msg: sched.Infeasible{Key: w.Key, Err: why}})
	}
}
