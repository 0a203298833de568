package enrol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/safefs"
	"mobula/internal/trust/join"
)

// knownName is the file of what the node knows of its cluster, with mode 0600: it has keys.
const knownName = "cluster.json"

// knownForm is the form of the file that this release writes.
const knownForm = 1

// known is what a node has last heard of its cluster.
type known struct {
	Form int `json:"form"`
	join.Enrolment
}

func (k known) equal(o known) bool {
	return k.Form == o.Form && slices.Equal(k.Servers, o.Servers) && slices.EqualFunc(k.GossipKeys, o.GossipKeys, bytes.Equal)
}

// readKnown reads the file; the zero value: there is none.
func readKnown(dir string) (k known, err error) {
	path := filepath.Join(dir, knownName)
	data, err := safefs.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return k, err
	}
	if err := json.Unmarshal(data, &k); err != nil {
		return k, errs.New(errs.CodeInvalid, "%s is damaged: %v; remove it, and say where the cluster is with --join", path, err)
	}
	if k.Form != knownForm {
		return k, errs.New(errs.CodeVersion, "%s has form %d, and this release reads form %d", path, k.Form, knownForm)
	}
	return k, nil
}

func (k known) write(dir string) error {
	data, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", knownName, err)
	}
	return safefs.Replace(filepath.Join(dir, knownName), append(data, '\n'))
}
