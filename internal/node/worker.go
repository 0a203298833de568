package node

import (
	"context"
	"os"
	"time"

	"mobula/internal/errs"
	"mobula/worker"
)

// exportGrace bounds the export of a worker's last spans.
const exportGrace = 2 * time.Second

// NoWorker is an error where this process was started as a worker and has not become one: a program that
// starts or joins a node instead would start programs without end.
func NoWorker() error {
	if _, is, _ := worker.FromEnv(os.Getenv); is {
		return errs.New(errs.CodeRuntimeSetup, "this process was started as a worker, but got to start or join a node: its main must use mobula.Main, or begin with `if mobula.WorkerMain() { return }`")
	}
	return nil
}

// Worker serves as a worker if this process was started as one.
func Worker(ctx context.Context) (bool, error) {
	env, is, err := worker.FromEnv(os.Getenv)
	if !is || err != nil {
		return is, err
	}
	logWithTasks()
	opt, end := traced(ctx)
	err = worker.Main(ctx, env, opt)
	short, cancel := context.WithTimeout(context.WithoutCancel(ctx), exportGrace)
	defer cancel()
	end(short)
	return true, err
}
