package trust

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"mobula/internal/errs"
)

// BundleForm is the form of the trust bundle that this release writes.
const BundleForm = 1

// Bundle is what each node of a cluster must know of whom to trust. Its number grows with each change, so that an older one is known as such. It has no
// secret: of the gossip's keys it has fingerprints, and a node that lacks one of them asks for it.
type Bundle struct {
	Form    int          `json:"form"`
	Cluster string       `json:"cluster"`
	Number  uint64       `json:"number"`
	Revoked []Revocation `json:"revoked,omitempty"` // as Merged orders them
	Roots   []string     `json:"roots"`             // fingerprints of the trusted ones; the last one signs
	Keys    []string     `json:"keys"`              // fingerprints of the gossip's; the first one encrypts
	Stage   uint64       `json:"stage"`             // of the rotation of these keys, as GossipRow counts it
}

// SignedBundle is a bundle with the signatures of all roots that were trusted when it was made: a node that knows one of them can tell that it is the
// authority's word.
type SignedBundle struct {
	Body       []byte   `json:"body"` // the bundle, as JSON
	Signatures [][]byte `json:"signatures"`
}

// Signed is what a signature of a bundle is of: it says nothing about anything else that a root signs.
func (s SignedBundle) Signed() []byte { return append([]byte("mobula: trust bundle\n"), s.Body...) }

// Read reads the bundle, whoever has signed it.
func (s SignedBundle) Read() (b Bundle, err error) {
	if err := json.Unmarshal(s.Body, &b); err != nil {
		return Bundle{}, errs.New(errs.CodeInvalid, "the cluster's trust bundle is damaged: %v", err)
	}
	switch {
	case b.Form > BundleForm:
		return Bundle{}, errs.New(errs.CodeVersion, "the cluster's trust bundle has the form %d, and this release knows %d: use the later release", b.Form, BundleForm)
	case b.Form < 1 || b.Number == 0 || !IsCluster(b.Cluster):
		return Bundle{}, errs.New(errs.CodeInvalid, "the cluster's trust bundle is damaged: it has form %d, number %d and cluster %q", b.Form, b.Number, b.Cluster)
	}
	return b, nil
}

// Merged joins lists of revocations: nothing that one of them revokes is left out, and of each certificate and home there is one row, in order.
func Merged(lists ...[]Revocation) (out []Revocation) {
	all := NewRevocations(slices.Concat(lists...))
	for _, r := range all.serials {
		out = append(out, r)
	}
	for _, r := range all.homes {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Revocation) int {
		return cmp.Or(cmp.Compare(a.Home, b.Home), cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Serial, b.Serial))
	})
	return out
}

// Fingerprint names a certificate or a key without telling it.
func Fingerprint(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// Fingerprints names several.
func Fingerprints(all [][]byte) (out []string) {
	for _, one := range all {
		out = append(out, Fingerprint(one))
	}
	return out
}
