package shell

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"mobula/gcs"
	"mobula/internal/trust/authority"
)

// watchBeat is how often a watch hears of its server when nothing changes. After two that do not come it begins again where it was. The one of
// nats.go's buckets would take ten seconds to notice that the server is lost which had the watch.
const watchBeat = time.Second

// stream and subject are where a bucket keeps its rows.
func stream(b gcs.Bucket) string              { return "KV_" + name(b) }
func subject(b gcs.Bucket, key string) string { return "$KV." + name(b) + "." + key }

// removal tells whether a message says that a row was removed, as nats.go or the server write it.
func removal(h nats.Header) bool {
	return h.Get("KV-Operation") != "" || h.Get("Nats-Marker-Reason") != ""
}

// Watch implements Tables.
func (t *KV) Watch(life, ready context.Context, changed func(gcs.Changed)) error {
	for _, of := range t.sources() {
		b, initial := of.bucket, make(chan struct{})
		w := &watch{source: of, life: life, changed: changed, complete: sync.OnceFunc(func() { close(initial) })}
		var sub *nats.Subscription
		err := untilReady(ready, func() (err error) { // after a server is lost the others may have yet to elect who leads the table
			sub, err = t.js.Subscribe(of.prefix+of.keys, w.take, nats.BindStream(of.stream), nats.OrderedConsumer(), nats.IdleHeartbeat(watchBeat),
				nats.DeliverLastPerSubject())
			return err
		})
		if err != nil {
			return fmt.Errorf("watch table %s: %w", b, err)
		}
		t.watchers = append(t.watchers, sub)
		if rows, err := sub.InitialConsumerPending(); err == nil && rows == 0 {
			w.complete()
		}
		select {
		case <-initial:
		case <-ready.Done():
			return fmt.Errorf("watch table %s: %w", b, context.Cause(ready))
		}
	}
	return nil
}

// source is where the rows of a table come from.
type source struct {
	bucket               gcs.Bucket
	stream, prefix, keys string // the keys of its rows, behind the prefix of their subjects
}

// sources are the tables, and of the authority's the one row that is for all.
func (t *KV) sources() (out []source) {
	for _, b := range gcs.Buckets {
		out = append(out, source{b, stream(b), subject(b, ""), ">"})
	}
	if t.bundle {
		out = append(out, source{gcs.Bundles, "KV_" + trustBucket, "$KV." + trustBucket + ".", authority.BundleKey})
	}
	if t.beats { // behind the nodes, whose rows they are for
		out = append(out, source{gcs.Beats, stream(gcs.Beats), subject(gcs.Beats, ""), ">"})
	}
	return out
}

// watch passes a table's changes on.
type watch struct {
	source
	life     context.Context
	changed  func(gcs.Changed)
	complete func() // all present rows were passed on
}

func (w *watch) take(m *nats.Msg) {
	at, err := m.Metadata()
	if err != nil || w.life.Err() != nil {
		return
	}
	c := gcs.Changed{Bucket: w.bucket, Key: m.Subject[len(w.prefix):], Revision: at.Sequence.Stream}
	if !removal(m.Header) {
		c.Record, err = gcs.ParseRecord(w.bucket, m.Data)
	}
	if err == nil { // else it is a row of a later version that this one cannot read: do not show it
		w.changed(c)
	}
	if at.NumPending == 0 {
		w.complete()
	}
}

// Close implements Tables.
func (t *KV) Close() {
	for _, w := range t.watchers {
		ended := make(chan struct{})
		w.SetClosedHandler(func(string) { close(ended) })
		if w.Unsubscribe() == nil { // else the connection is gone already, and the watch with it
			<-ended
		}
	}
	t.watchers = nil
}
