package spill

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path"
	"regexp"
	"time"

	"mobula/actors"
	"mobula/objectstore/spill/format"
	"mobula/objectstore/spill/storage"
)

// Config says where and how to spill. Start from Default.
type Config struct {
	// URLs are the targets, each once: absolute paths, file:// and, with package
	// spill/cloud imported, s3:// and mem://. Empty means the one directory Dir.
	URLs []string
	// Dir is used when URLs is empty. The default is under /var/tmp, which is on disk where
	// /tmp may be memory.
	Dir string
	// Session names the node: its files lie in a subdirectory of this name in each target. A node
	// that is started again under the same session finds its files. Letters, digits, ".", "_" and "-".
	Session string
	// Node is the identity of the node, which every target keeps beside the session. A session of another's is refused, and a
	// target is found again wherever it is in URLs. Empty: whoever has the session's name.
	Node string
	// Restarts says that the node may be started again under this session after it was killed, so that
	// other nodes are not to remove its files when they open the same directory.
	Restarts bool
	// Keep leaves the files when the spiller is closed. The default deletes them.
	Keep bool

	Writers           int           // files written at a time on each target; 4, Ray's max_io_workers
	Readers           int           // objects read at a time on each target, apart from the writers; 4
	MinFileBytes      uint64        // objects are fused until a file has this many; 100 MiB, Ray's min_spilling_size
	MaxFused          int           // objects in one file, at most; 2000, Ray's max_fused_object_count
	CapacityThreshold float64       // a disk fuller than this share takes no more; 0.95, Ray's local_fs_capacity_threshold
	CapacityInterval  time.Duration // free space is asked at most this often; 100 ms, as in Ray
	ProbeAfter        time.Duration // a failed target is tried again after this, later after up to 32 times it; 1 s
	IOTimeout         time.Duration // of one file's write or one object's read on a target that can be interrupted; 5 min
	LogEvery          time.Duration // at most one log line in this time; 10 s

	Parent actors.Parent // of the actors spiller/N; nil: a tree of the spiller's own
	Logger *slog.Logger  // nil: silent
}

// Default is the configuration for a session: one directory on disk.
func Default(session string) Config {
	return Config{
		Dir:               fmt.Sprintf("/var/tmp/mobula-%d", os.Geteuid()),
		Session:           session,
		Writers:           4,
		Readers:           4,
		MinFileBytes:      100 << 20,
		MaxFused:          2000,
		CapacityThreshold: 0.95,
		CapacityInterval:  100 * time.Millisecond,
		ProbeAfter:        time.Second,
		IOTimeout:         5 * time.Minute,
		LogEvery:          10 * time.Second,
	}
}

var sessionName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

const (
	maxPool   = 256
	maxFused  = 1 << 20 // an index of 44 MiB
	maxTarget = 1 << 10
)

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	var all []error
	bad := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if !sessionName.MatchString(c.Session) || len(c.Session) > format.MaxSession {
		bad("Session %q: want 1 to %d letters, digits, '.', '_' or '-', not starting with a dot", c.Session, format.MaxSession)
	}
	if len(c.URLs) > maxTarget {
		bad("URLs: %d targets, at most %d are possible", len(c.URLs), maxTarget)
	}
	if _, err := c.targets(); err != nil {
		all = append(all, err)
	}
	for _, p := range []struct {
		name string
		n    int
		max  int
	}{{"Writers", c.Writers, maxPool}, {"Readers", c.Readers, maxPool}, {"MaxFused", c.MaxFused, maxFused}} {
		if p.n < 1 || p.n > p.max {
			bad("%s is %d: want 1 to %d", p.name, p.n, p.max)
		}
	}
	if c.MinFileBytes < 1 {
		bad("MinFileBytes is 0: want at least 1, which gives every object a file of its own")
	}
	if !(c.CapacityThreshold > 0 && c.CapacityThreshold <= 1) {
		bad("CapacityThreshold is %g: want more than 0 and at most 1", c.CapacityThreshold)
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"CapacityInterval", c.CapacityInterval}, {"ProbeAfter", c.ProbeAfter}, {"IOTimeout", c.IOTimeout}, {"LogEvery", c.LogEvery}} {
		if d.d <= 0 {
			bad("%s is %v: want more than 0", d.name, d.d)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("spill configuration: %w", errors.Join(all...))
}

// targets reads the URLs; no two may name the same place.
func (c Config) targets() ([]*url.URL, error) {
	texts := c.URLs
	if len(texts) == 0 {
		texts = []string{c.Dir}
	}
	var all []error
	out := make([]*url.URL, 0, len(texts))
	seen := make(map[string]bool)
	for _, text := range texts {
		u, err := storage.Parse(text)
		if err != nil {
			all = append(all, err)
			continue
		}
		place := u.Scheme + "://" + u.Host + path.Clean("/"+u.Path)
		if q := u.Query(); u.Scheme != "file" && len(q) > 0 {
			place += "?" + q.Encode() // the endpoint, or a prefix in the bucket
		}
		if seen[place] {
			all = append(all, fmt.Errorf("spill target %q is named twice", u.Redacted()))
		}
		seen[place] = true
		out = append(out, u)
	}
	return out, errors.Join(all...)
}
