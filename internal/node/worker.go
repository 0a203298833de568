package node

import (
	"context"
	"os"

	"mobula/worker"
)

// Worker serves as a worker if this process was started as one.
func Worker(ctx context.Context) (bool, error) {
	env, is, err := worker.FromEnv(os.Getenv)
	if !is || err != nil {
		return is, err
	}
	return true, worker.Main(ctx, env)
}
