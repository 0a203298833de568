package observe

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"path/filepath"

	"mobula/internal/errs"
	"mobula/internal/safefs"
)

// TokenName is the file, in the node's directory and with mode 0600, of the token that the metrics are served for.
const TokenName = "metrics.token"

// metricsToken gives the token, which stays the same when the node starts again: who scrapes has a copy.
func metricsToken(dir string) (string, error) {
	path := filepath.Join(dir, TokenName)
	text, err := safefs.ReadFile(path)
	if kept := string(bytes.TrimSpace(text)); err == nil && kept != "" {
		return kept, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", errs.New(errs.CodeInvalid, "the token of the metrics: %v", err)
	}
	made := rand.Text()
	if err := safefs.WriteFile(path, []byte(made+"\n"), 0o600); err != nil {
		return "", errs.New(errs.CodeInvalid, "the token of the metrics: %v", err)
	}
	return made, nil
}
