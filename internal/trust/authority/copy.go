package authority

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"mobula/internal/errs"
	"mobula/internal/safefs"
	"mobula/internal/trust"
)

// A control-plane server keeps a copy of the authority's row beside the secret. Servers that were all off for so long that their certificates have
// expired cannot form their set, which has the row; each certifies itself by its copy first.

// copyName is the file of a server's directory that has the copy. Its keys are sealed, as they are in the tables.
const copyName = "authority.json"

// errReadOnly says that a copy cannot be changed.
var errReadOnly = errors.New("authority: only a copy of the authority's row is there; the tables are away")

// Keep writes the copy to a server's directory. When it returns, the copy is on disk.
func (a *Authority) Keep(ctx context.Context, dir string) error {
	row, _, err := a.row(ctx)
	if err != nil {
		return err
	}
	data, err := json.Marshal(row)
	if err != nil {
		return fmt.Errorf("%s: %w", copyName, err)
	}
	path := filepath.Join(dir, copyName)
	if kept, err := safefs.ReadFile(path); err == nil && string(kept) == string(data) {
		return nil
	}
	return safefs.Replace(path, data)
}

// FromCopy is the authority by the copy in a server's directory: it issues certificates and changes nothing. fs.ErrNotExist: there is no copy.
func FromCopy(dir string, cfg Config) (*Authority, error) {
	path := filepath.Join(dir, copyName)
	data, err := safefs.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var row trust.AuthorityRow
	if err := json.Unmarshal(data, &row); err != nil {
		return nil, errs.New(errs.CodeInvalid, "%s is damaged: %v; remove it", path, err)
	}
	cfg.Tables = rowCopy(data)
	return New(cfg), nil
}

// rowCopy is tables with the authority's row alone.
type rowCopy []byte

// Read implements Tables.
func (c rowCopy) Read(_ context.Context, key string) ([]byte, uint64, error) {
	if key != authorityKey {
		return nil, 0, nil
	}
	return c, 1, nil
}

// Write implements Tables.
func (rowCopy) Write(context.Context, string, []byte, uint64) error { return errReadOnly }

// Delete implements Tables.
func (rowCopy) Delete(context.Context, string, uint64) error { return errReadOnly }

// Keys implements Tables.
func (rowCopy) Keys(context.Context, string) ([]string, error) { return nil, nil }
