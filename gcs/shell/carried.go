package shell

import (
	"context"
	"slices"

	"mobula/gcs"
)

// carried are the tables on a server of a cluster. Its core watches them through its feed, which has the rows anyway: a watch of its own would wake the server
// once a second for each table.
type carried struct {
	*KV
	feed  *feed
	wrote *wrote
}

// Do implements Tables.
func (t *carried) Do(ctx context.Context, e gcs.Effect) gcs.Answered {
	a := t.KV.Do(ctx, e)
	if w, writes := e.(gcs.Write); writes && a.Err == nil {
		t.wrote.note(w.Record.Bucket(), a.Revision)
	}
	return a
}

// Watch implements Tables.
func (t *carried) Watch(life, ready context.Context, changed func(gcs.Changed)) error {
	r := newRelay(life, changed)
	t.feed.news.Add(askedRelay{r, t.wrote})
	return r.await(ready)
}

// Close implements Tables. The feed lives on.
func (t *carried) Close() { t.feed.closeRelays() }

// openRelays opens those that were asked for, once the rows have all that the asker has written.
func (f *feed) openRelays() {
	f.asked = slices.DeleteFunc(f.asked, func(a askedRelay) bool {
		has := a.wrote.in(f.upto)
		if has {
			f.open(a.to)
		}
		return has
	})
}

// open gives the rows, and has the changes passed on from here.
func (f *feed) open(r *relay) {
	var rows []gcs.Changed
	for _, b := range fed {
		rows = append(rows, f.inOrder(b)...)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.relays = append(f.relays, r)
	r.rows <- rows
}

// pass passes a change on.
func (f *feed) pass(c gcs.Changed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.relays.pass(c)
}

// closeRelays ends all that are open.
func (f *feed) closeRelays() {
	f.mu.Lock()
	all := f.relays
	f.relays = nil
	f.mu.Unlock()
	all.close()
}
