package node

import (
	"context"
	"os"
	"time"

	"mobula/worker"
)

// exportGrace bounds the export of a worker's last spans.
const exportGrace = 2 * time.Second

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
