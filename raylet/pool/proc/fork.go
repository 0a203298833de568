package proc

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"mobula/raylet/pool"
)

// forking is the additional state of a process that a template forks.
type forking struct {
	from  *template
	fork  *fork
	pipes []*os.File // read ends of the worker's output
	read  chan struct{}
}

// startFork asks the template for the worker; waitFork gives the outcome.
func (p *process) startFork(t *template) error {
	outR, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, outR.Close(), outW.Close())
	}
	p.out, p.err = p.stream("out"), p.stream("err")
	f, err := t.ask(p.spec.Worker, p.own, outW, errW)
	err = errors.Join(err, outW.Close(), errW.Close())
	if err != nil {
		p.closeStreams()
		return errors.Join(err, outR.Close(), errR.Close())
	}
	p.asked = &forking{from: t, fork: f, pipes: []*os.File{outR, errR}, read: make(chan struct{}, 2)}
	for i, to := range []*stream{p.out, p.err} {
		go func() {
			_, _ = io.Copy(to, p.asked.pipes[i]) // a stream takes everything; the end of reading is the end
			p.asked.read <- struct{}{}
		}()
	}
	return nil
}

// waitFork is wait for a worker that a template forks. An error means that there was no worker.
func (p *process) waitFork() (pool.Exit, error) {
	defer p.endFork()
	f := p.asked.fork
	var pid int
	select {
	case pid = <-f.forked:
	case <-p.asked.from.gone:
		return pool.Exit{}, p.asked.from.why()
	}
	if pid == 0 {
		return pool.Exit{}, f.err
	}
	p.mu.Lock()
	p.pid = pid
	p.guard.Begin(p.spec.Worker.String(), pid)
	if p.doomed {
		_ = unix.Kill(-pid, unix.SIGKILL) // gone already: its exit tells
	}
	p.mu.Unlock()
	var e pool.Exit
	select {
	case e = <-f.exited:
	case <-p.asked.from.gone: // the kernel has killed the worker with it, but perhaps not the worker's children
		_ = unix.Kill(-pid, unix.SIGKILL)
		e = pool.Exit{PID: pid, Signal: unix.SIGKILL.String()}
		select {
		case e = <-f.exited:
		default:
		}
	}
	p.mu.Lock()
	p.pid = 0
	p.guard.End(p.spec.Worker.String())
	p.mu.Unlock()
	return e, nil
}

// endFork reads the worker's output to the end. It does not wait for a grandchild outside the group, which may
// hold the pipes.
func (p *process) endFork() {
	for _, f := range p.asked.pipes {
		_ = f.SetReadDeadline(time.Now().Add(time.Second)) // pipes have deadlines
	}
	for range p.asked.pipes {
		<-p.asked.read
	}
	for _, f := range p.asked.pipes {
		_ = f.Close() // only read
	}
	p.closeStreams()
}
