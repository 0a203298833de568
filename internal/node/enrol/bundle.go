package enrol

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/safefs"
	"mobula/internal/trust"
)

// bundleName is the file of the trust bundle that the node follows: after a restart no older one is believed, whoever gives it.
const bundleName = "bundle.json"

// readBundle reads the file, which this node has written; the zero value: there is none.
func readBundle(dir string) (b trust.Bundle, err error) {
	path := filepath.Join(dir, bundleName)
	data, err := safefs.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return b, err
	}
	var s trust.SignedBundle
	if err := json.Unmarshal(data, &s); err != nil {
		return b, errs.New(errs.CodeInvalid, "%s, which says whose certificates count no more, is damaged: %v; remove it, and the node asks again", path, err)
	}
	return s.Read()
}

// Follow takes a later trust bundle into use: connections that it revokes are cut when it returns. Then it keeps the bundle. An older one is ErrStale.
func (m *Member) Follow(s trust.SignedBundle) error {
	b, err := m.Live().Bundle(s)
	if err != nil {
		return err
	}
	m.mu.Lock()
	known := m.bundle.Number
	if b.Number > known {
		m.bundle = b
	}
	m.mu.Unlock()
	switch {
	case b.Number < known:
		return trust.Refuse(trust.ErrStale, "trust bundle %d is older than bundle %d, which this node follows", b.Number, known)
	case b.Number == known:
		return nil
	}
	m.Live().Revoke(trust.NewRevocations(b.Revoked))
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("%s: %w", bundleName, err)
	}
	return safefs.Replace(filepath.Join(m.cfg.Dir, bundleName), data)
}

// Bundle is the trust bundle that the node follows; the zero value: none yet.
func (m *Member) Bundle() trust.Bundle {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bundle
}

// Lacks tells whether the node has other roots, or other keys of the gossip, than the bundle that it follows names.
func (m *Member) Lacks() (roots, keys bool) {
	b := m.Bundle()
	if b.Number == 0 {
		return false, false
	}
	var own []string
	for _, r := range m.Live().Present().Roots {
		own = append(own, trust.Fingerprint(r.Raw))
	}
	return !slices.Equal(own, b.Roots), !slices.Equal(trust.Fingerprints(m.GossipKeys()), b.Keys)
}
