package trust

import (
	"slices"
	"time"

	"mobula/internal/errs"
)

// AuthorityForm is the form of the authority's row that this release writes.
const AuthorityForm = 1

// AuthorityRow is the cluster's authority, as any control-plane server can serve it: its keys are encrypted.
type AuthorityRow struct {
	Form    int    `json:"form"`
	Cluster string `json:"cluster"` // the cluster's id: random
	Name    string `json:"name"`    // for people
	Roots   []Root `json:"roots"`   // oldest first; the last one signs
}

// Root is one certificate of the authority with its key.
type Root struct {
	Certificate []byte    `json:"certificate"`     // signed by itself
	Cross       []byte    `json:"cross,omitempty"` // the same key, signed by the root before: for nodes that know only that one
	Key         []byte    `json:"key"`             // encrypted with the cluster's secret
	Until       time.Time `json:"until"`           // trusted until then
}

// Check refuses a row that this release cannot serve.
func (a AuthorityRow) Check() error {
	switch {
	case a.Form > AuthorityForm:
		return errs.New(errs.CodeVersion, "the authority of cluster %q has the form %d, and this release knows %d: use the later release",
			a.Name, a.Form, AuthorityForm)
	case a.Form < 1 || !IsCluster(a.Cluster) || len(a.Roots) == 0:
		return errs.New(errs.CodeInvalid, "the row of the cluster's authority is damaged")
	}
	return nil
}

// Signs is the root that signs.
func (a AuthorityRow) Signs() Root { return a.Roots[len(a.Roots)-1] }

// Trusted are the roots that count at a time. The one that signs is always among them.
func (a AuthorityRow) Trusted(now time.Time) []Root {
	i := slices.IndexFunc(a.Roots, func(r Root) bool { return now.Before(r.Until) })
	if i < 0 {
		i = len(a.Roots) - 1
	}
	return a.Roots[i:]
}

// Finished is the row with the root that signs alone, before the overlap has passed.
func (a AuthorityRow) Finished() AuthorityRow {
	a.Roots = a.Roots[len(a.Roots)-1:]
	return a
}

// Rotated is the row with another root, that signs from now on. The one before stays trusted until a time. At most two are trusted at once, because a
// certificate proves itself to those who know the root before by one cross-signature.
func (a AuthorityRow) Rotated(next Root, now, until time.Time) (AuthorityRow, error) {
	trusted := slices.Clone(a.Trusted(now))
	if len(trusted) > 1 {
		return a, errs.New(errs.CodeInvalid, "the authority was rotated before, and the root before that is trusted until %s: rotate after that",
			Stamp(trusted[0].Until))
	}
	if until.Before(trusted[0].Until) {
		trusted[0].Until = until
	}
	a.Roots = append(trusted, next)
	return a, nil
}
