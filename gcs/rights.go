package gcs

import (
	"fmt"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/remote"
)

// Touches tells which row a call is about, and whether it changes it.
func Touches(e Effect) (bucket Bucket, key string, changes bool) {
	switch e := e.(type) {
	case Write:
		return e.Record.Bucket(), e.Record.Key(), true
	case Delete:
		return e.Bucket, e.Key, true
	case Read:
		return e.Bucket, e.Key, false
	}
	return "", "", false
}

// CallID is the ID of a call, which its answer repeats.
func CallID(e Effect) uint64 {
	switch e := e.(type) {
	case Write:
		return e.ID
	case Delete:
		return e.ID
	case Read:
		return e.ID
	}
	return 0
}

// Refuses tells why a life may not make a call: a node reads all tables and changes rows of its own home only, as long as its life is the home's
// present one. home is the row of its home, and present the row that the call changes, at the revision that the call names; nil: none, or it names none.
func Refuses(e Effect, from remote.Life, home *HomeRecord, present Record) error {
	switch e := e.(type) {
	case Read:
		return nil
	case Write:
		switch r := e.Record.(type) {
		case HomeRecord:
			return refusesHome(r, e.Revision, from.Home, home)
		case NodeRecord:
			if r.Home != from.Home || r.Epoch != from.Epoch {
				return notOwn(from.Home, Nodes, r.Key())
			}
		case ActorRecord:
			if r.Job.Home() != from.Home || e.Revision < 0 || !ownActor(present, from.Home) {
				return notOwn(from.Home, Actors, r.Key())
			}
		default:
			return notOwn(from.Home, e.Record.Bucket(), e.Record.Key())
		}
		return over(from, home)
	case Delete:
		own := e.Bucket == Nodes && e.Key == from.Home.String() || e.Bucket == Actors && e.Revision > 0 && ownActor(present, from.Home)
		if !own {
			return notOwn(from.Home, e.Bucket, e.Key)
		}
		return over(from, home)
	}
	return errs.New(errs.CodePermission, "node %v asks for %T", from.Home, e)
}

// refusesHome lets a node begin its own next life, and no more: what says that lives are over stays.
func refusesHome(r HomeRecord, revision int64, of ids.Home, was *HomeRecord) error {
	switch {
	case r.Home != of || revision < 0:
		return notOwn(of, Homes, r.Key())
	case was == nil:
		was = &HomeRecord{}
	case r.Identity != was.Identity || r.Epoch <= was.Epoch:
		return errs.New(errs.CodePermission, "home %v is in its life %d as node %s: it does not go on as life %d of node %s", of, was.Epoch, was.Identity, r.Epoch, r.Identity)
	}
	if r.Fenced != was.Fenced {
		return errs.New(errs.CodePermission, "home %v does not decide which of its lives are over", of)
	}
	return nil
}

// over refuses a life that was ended, or that another one has followed.
func over(l remote.Life, home *HomeRecord) error {
	if home == nil || l.Epoch > home.Epoch {
		return errs.New(errs.CodePermission, "home %v has not begun its life %d", l.Home, l.Epoch)
	}
	if l.Epoch <= home.Fenced || l.Epoch < home.Epoch {
		return fmt.Errorf("%w: %w", ErrFenced, errs.New(errs.CodePermission, "life %d of home %v is over: it was fenced up to %d and is in life %d", l.Epoch, l.Home, home.Fenced, home.Epoch))
	}
	return nil
}

// ownActor tells whether a row may be replaced by a node: there is none, or it is of a job of its home.
func ownActor(present Record, home ids.Home) bool {
	a, ok := present.(ActorRecord)
	return present == nil || ok && a.Job.Home() == home
}

func notOwn(home ids.Home, b Bucket, key string) error {
	return errs.New(errs.CodePermission, "node %v may not change row %q of the table of %s, which is of another home", home, key, b)
}
