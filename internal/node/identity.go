package node

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"mobula/internal/errs"
	"mobula/internal/safefs"
)

// identityName is the file that tells a node's identity. What a node leaves elsewhere, its segment and its sessions in spill targets, has this
// name: another node with the same path, on another host or in another container, has another.
const identityName = "identity"

const identityLen = 32 // hexadecimal digits

// identityOf is the random identity of the node that has the directory, for all its lives; one that keeps nothing has one life.
func identityOf(dir string, keep bool) (string, error) {
	path := filepath.Join(dir, identityName)
	if keep {
		b, err := safefs.ReadFile(path)
		id := strings.TrimSpace(string(b))
		switch {
		case err == nil && isIdentity(id):
			return id, nil
		case err == nil:
			return "", errs.New(errs.CodeInvalid, "%s holds %q where the node's identity should be, %d hexadecimal digits: put back what it was, or give the node another directory", path, id, identityLen)
		case !errors.Is(err, fs.ErrNotExist):
			return "", dirError(dir, err)
		}
	}
	b := make([]byte, identityLen/2)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	id := hex.EncodeToString(b)
	if keep {
		if err := safefs.Replace(path, []byte(id+"\n")); err != nil {
			return "", dirError(dir, err)
		}
	}
	return id, nil
}

func isIdentity(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == identityLen/2
}
