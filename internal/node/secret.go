package node

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"path/filepath"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/safefs"
)

// secret is what tokens are made with.
type secret []byte

// secretName is the file of a kept node's secret.
const secretName = "secret"

// secretOf gives the node's secret; a kept node's is in its directory.
func secretOf(dir string, keep bool) (secret, error) {
	path := filepath.Join(dir, secretName)
	if keep {
		if b, err := safefs.ReadFile(path); err == nil && len(b) == 32 {
			return b, nil
		}
	}
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		return nil, err
	}
	if keep {
		if err := safefs.WriteFile(path, b, 0o600); err != nil {
			return nil, errs.New(errs.CodeInvalid, "node directory: %v", err)
		}
	}
	return b, nil
}

// token is what a driver proves with that a job is its own, after the node restarted too:
// a MAC under the secret in the node's directory.
func (s secret) token(job ids.JobID, client ids.ClientID) []byte {
	mac := hmac.New(sha256.New, s)
	b := make([]byte, 0, 16)
	if job <= math.MaxUint32 { // as release 0.4 wrote it, whose drivers may come back
		b = binary.BigEndian.AppendUint32(b, uint32(job))
	} else {
		b = binary.BigEndian.AppendUint64(b, uint64(job))
	}
	mac.Write(binary.BigEndian.AppendUint64(b, uint64(client)))
	return mac.Sum(nil)
}

func (s secret) proves(job ids.JobID, client ids.ClientID, token []byte) bool {
	return hmac.Equal(s.token(job, client), token)
}

// newToken is what a worker process proves with that it is the one that was started.
func newToken() []byte {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails: crypto/rand says so
	return b
}
