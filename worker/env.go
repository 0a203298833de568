package worker

import (
	"encoding/hex"
	"os"
	"strconv"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// The environment that the node's launcher (package raylet/pool/proc) gives a worker.
const (
	envSocket = "MOBULA_WORKER_SOCKET"
	envToken  = "MOBULA_WORKER_TOKEN"
	envID     = "MOBULA_WORKER_ID"
	envJob    = "MOBULA_WORKER_JOB"
	envKind   = "MOBULA_WORKER_KIND"
	envFunc   = "MOBULA_WORKER_FUNC"
	envMemory = "MOBULA_WORKER_MEMORY" // bytes: a soft limit of the heap; optional
	envChaos  = "MOBULA_WORKER_CHAOS"  // socket of a test's plan of faults; optional
)

// Env is a worker's settings from its environment.
type Env struct {
	Socket string
	Token  []byte
	Job    ids.JobID
	Number string // N of worker/N
	Kind   string // "tasks", "actors" or "isolated"
	Func   string // of an isolated worker
	Memory int64  // bytes; 0: no limit of its own
	Chaos  string // socket of a test's plan of faults; empty: none
}

// FromEnv reads the environment. It is false if this process is not a worker.
func FromEnv(getenv func(string) string) (Env, bool, error) {
	e := Env{Socket: getenv(envSocket), Number: getenv(envID), Kind: getenv(envKind), Func: getenv(envFunc), Chaos: getenv(envChaos)}
	if e.Socket == "" {
		return Env{}, false, nil
	}
	var err error
	if e.Token, err = hex.DecodeString(getenv(envToken)); err != nil {
		return Env{}, true, errs.New(errs.CodeInvalid, "%s is not hexadecimal: %v", envToken, err)
	}
	if e.Job, err = ids.ParseNumber[ids.JobID](getenv(envJob)); err != nil {
		return Env{}, true, errs.New(errs.CodeInvalid, "%s=%q is no job: %v", envJob, getenv(envJob), err)
	}
	if s := getenv(envMemory); s != "" {
		if e.Memory, err = strconv.ParseInt(s, 10, 64); err != nil || e.Memory <= 0 {
			return Env{}, true, errs.New(errs.CodeInvalid, "%s=%q is no number of bytes", envMemory, s)
		}
	}
	return e, true, nil
}

// forget removes the worker's variables from the environment: a program that the user's code starts must not take
// itself for a worker, nor see the token.
func forget() {
	for _, k := range []string{envSocket, envToken, envID, envJob, envKind, envFunc, envMemory, envChaos} {
		_ = os.Unsetenv(k) // fails for malformed names only
	}
}
