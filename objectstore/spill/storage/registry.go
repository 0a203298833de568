package storage

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Options identify the owner of a storage's files.
type Options struct {
	Session string
	Node    string // identity of the session's node; a session of another node is refused. Empty: unknown
	// Restarts says that a process may come back to this session after it was killed. Others then keep it until
	// the machine was rebooted or a day has passed; else they remove it when they open.
	Restarts bool
	Buffers  *Buffers
}

// Opener opens one target. It takes the session's lock and removes the files of dead sessions.
type Opener func(ctx context.Context, u *url.URL, o Options) (Storage, error)

var openers struct { // guarded by mu; written while packages initialise
	mu     sync.RWMutex
	scheme map[string]Opener
}

// drivers are the packages that a program imports for their schemes.
var drivers = map[string]string{"s3": "mobula/objectstore/spill/s3", "mem": "mobula/objectstore/spill/s3"}

// Register adds a URL scheme. It panics on a second one of the same name, which is a bug in the program.
func Register(scheme string, open Opener) {
	openers.mu.Lock()
	defer openers.mu.Unlock()
	if openers.scheme == nil {
		openers.scheme = make(map[string]Opener)
	}
	if _, dup := openers.scheme[scheme]; dup {
		panic("storage: scheme " + scheme + " registered twice")
	}
	openers.scheme[scheme] = open
}

// Parse reads a target: a bare path or a URL of a registered scheme.
func Parse(target string) (*url.URL, error) {
	if !strings.Contains(target, "://") {
		if !strings.HasPrefix(target, "/") {
			return nil, fmt.Errorf("spill target %q: want an absolute path or a URL", target)
		}
		return &url.URL{Scheme: "file", Path: target}, nil
	}
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("spill target: %w", err)
	}
	openers.mu.RLock()
	defer openers.mu.RUnlock()
	if _, ok := openers.scheme[u.Scheme]; !ok {
		known := make([]string, 0, len(openers.scheme))
		for s := range openers.scheme {
			known = append(known, s+"://")
		}
		slices.Sort(known)
		if path := drivers[u.Scheme]; path != "" {
			return nil, fmt.Errorf("spill target %q: this program has not linked the driver of %s://: import _ %q", u.Redacted(), u.Scheme, path)
		}
		return nil, fmt.Errorf("spill target %q: this program knows %s only", u.Redacted(), strings.Join(known, ", "))
	}
	if u.Scheme == "file" && (u.Host != "" || u.Path == "") {
		return nil, fmt.Errorf("spill target %q: want file:///absolute/path", target)
	}
	return u, nil
}

// Open opens a target that Parse has read.
func Open(ctx context.Context, u *url.URL, o Options) (Storage, error) {
	openers.mu.RLock()
	open := openers.scheme[u.Scheme]
	openers.mu.RUnlock()
	if open == nil {
		return nil, fmt.Errorf("spill target %q: nothing is registered for its scheme", u.Redacted())
	}
	return open(ctx, u, o)
}
