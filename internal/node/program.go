package node

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/wire"
)

// program is what a job's workers run: the driver's executable, held open so that it
// stays the same when its file is replaced, or what the driver said.
type program struct {
	exe       *os.File // nil: the node's own
	args      []string
	said      *wire.Program // nil: exe
	functions []wire.FuncInfo
	namespace string // of actor names, for whom names none
}

// single tells whether a worker has one lease at a time.
func (p program) single() bool { return p.said != nil && p.said.Single }

func (n *Node) setProgram(job ids.JobID, p program) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old, ok := n.programs[job]; ok && old.exe != nil {
		_ = old.exe.Close() // only ever read
	}
	n.programs[job] = p
}

func (n *Node) programOf(job ids.JobID) program {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p, ok := n.programs[job]; ok {
		return p
	}
	return program{functions: registry.List()} // its driver is in this process, or gone: its workers run this program
}

func (n *Node) dropProgram(job ids.JobID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p, ok := n.programs[job]; ok && p.exe != nil {
		_ = p.exe.Close() // only ever read
	}
	delete(n.programs, job)
}

// secretName is the file of a kept node's secret.
const secretName = "secret"

// secretOf gives the node's secret; a kept node's is in its directory.
func secretOf(dir string, keep bool) ([]byte, error) {
	path := filepath.Join(dir, secretName)
	if keep {
		if b, err := os.ReadFile(path); err == nil && len(b) == 32 {
			return b, nil
		}
	}
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		return nil, err
	}
	if keep {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return nil, errs.New(errs.CodeInvalid, "node directory: %v", err)
		}
	}
	return b, nil
}

// token is what a driver proves with that a job is its own, after the node restarted too:
// a MAC under the secret in the node's directory.
func (n *Node) token(job ids.JobID, client ids.ClientID) []byte {
	mac := hmac.New(sha256.New, n.secret)
	var b [12]byte
	binary.BigEndian.PutUint32(b[:4], uint32(job))
	binary.BigEndian.PutUint64(b[4:], uint64(client))
	mac.Write(b[:])
	return mac.Sum(nil)
}

func tokenMatches(want, got []byte) bool { return hmac.Equal(want, got) }

// fingerprint is a short name that follows from a path.
func fingerprint(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:6])
}

// newToken is what a worker process proves with that it is the one that was started.
func newToken() []byte {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails: crypto/rand says so
	return b
}
