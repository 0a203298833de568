package node

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mobula/internal/guard"
	"mobula/internal/ids"
	"mobula/raylet/pool"
	"mobula/raylet/pool/proc"
)

// startProcesses makes the launcher of worker processes. Its thread costs nothing until
// the first start.
func (n *Node) startProcesses() error {
	if n.cfg.Keep {
		if k := guard.Sweep(n.identity); k > 0 {
			n.cfg.Logger.Warn("processes that tasks had started, and that an earlier life of this node left, were killed", "processes", k)
		}
	}
	var err error
	n.procs, err = proc.New(proc.Config{
		Exe: n.cfg.Executable, Args: n.cfg.Args, More: n.cfg.Env,
		Program: n.executable,
		Socket:  n.Address(),
		Node:    n.identity, Log: n.cfg.Logger,
		Mirror: n.cfg.WorkerOutput,
		LogDir: filepath.Join(n.dir, "logs"),
		Post:   func(ev pool.Event) { n.raylet.Deliver(ev) },
		Chaos:  n.chaosAddress(),
	})
	return err
}

// executable is what a job's workers of a language run: what its driver said; else the driver's program, by a
// descriptor of the caller's; or this program where the driver is in this process.
func (n *Node) executable(job ids.JobID, language string) (proc.Program, error) {
	n.mu.Lock()
	defer n.mu.Unlock() // a driver that comes back brings another descriptor, and this one is closed
	p := n.programs[job]
	env := p.environ
	if p.local {
		env = os.Environ()
	}
	if said := p.of(language); said != nil {
		return proc.Program{Exe: said.Args[0], Args: said.Args[1:], Env: env, Template: said.Template}, nil
	}
	if p.exe == nil {
		return proc.Program{Env: env}, nil
	}
	fd, err := unix.FcntlInt(p.exe.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return proc.Program{}, err
	}
	return proc.Program{File: os.NewFile(uintptr(fd), p.exe.Name()), Args: p.args, Env: env}, nil
}
