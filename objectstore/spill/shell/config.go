package shell

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path"
	"regexp"
	"time"

	"mobula/objectstore/spill"
	"mobula/objectstore/spill/format"
	"mobula/objectstore/spill/storage"
)

// Config says where and how to spill. Start from Default.
type Config struct {
	spill.Config
	// URLs are the targets, each once: absolute paths, file:// and, with package
	// spill/s3 imported, s3:// and mem://. Empty means the one directory Dir.
	URLs []string
	// Dir is used when URLs is empty. The default is under /var/tmp, which is on disk, while /tmp may be memory.
	Dir string
	// Session names the node: its files lie in a subdirectory of this name in each target. A node
	// that is started again under the same session finds its files. Letters, digits, ".", "_" and "-".
	Session string
	// Node is the identity of the node, which every target keeps beside the session. A session of another node is refused,
	// and a target is recognised wherever it is in URLs. Empty: any node with the session's name.
	Node string
	// Restarts says that the node may be started again under this session after it was killed, so other nodes must
	// not remove its files when they open the same directory.
	Restarts bool
	// Keep keeps the files when the spiller is closed. The default deletes them.
	Keep bool

	LogEvery time.Duration // at most one log line in this time; 10 s

	Logger *slog.Logger // nil: silent
}

// Default is the configuration for a session: one directory on disk.
func Default(session string) Config {
	return Config{
		Config:   spill.Default(),
		Dir:      fmt.Sprintf("/var/tmp/mobula-%d", os.Geteuid()),
		Session:  session,
		LogEvery: 10 * time.Second,
	}
}

var sessionName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

const maxTarget = 1 << 10

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
	if err := c.Config.Validate(); err != nil {
		all = append(all, err)
	}
	if c.LogEvery <= 0 {
		bad("LogEvery is %v: want more than 0", c.LogEvery)
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
