package shell

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/remote"
)

// desk answers what nodes ask that may not touch the tables. It believes a request's subject, which NATS lets only that home use, and
// answers only on subjects of that home. Requests are answered side by side, up to a bound.
type desk struct {
	tables  Tables
	feed    *feed
	accused func(gcs.Accused)
	refuses func(gcs.Effect, remote.Life, *gcs.HomeRecord, gcs.Record) error // gcs.Refuses
	room    chan struct{}                                                    // a token for each request under way

	mu     sync.Mutex
	closed bool // guarded by mu
	wg     sync.WaitGroup
	ctx    context.Context
	stop   context.CancelFunc
}

// deskRoom is how many requests are under way at once.
const deskRoom = 256

func newDesk(tables Tables, feed *feed, accused func(gcs.Accused)) *desk {
	d := &desk{tables: tables, feed: feed, accused: accused, refuses: gcs.Refuses, room: make(chan struct{}, deskRoom)}
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d
}

// open adds its subjects to the service, which one of the servers answers, but for those of this server and those that all hear.
func (d *desk) open(svc micro.Service, server string) error {
	return errors.Join(
		svc.AddEndpoint("do", micro.HandlerFunc(d.do), micro.WithEndpointSubject(requestsOfAll("do"))),
		svc.AddEndpoint("rows", micro.HandlerFunc(d.giveRows), micro.WithEndpointSubject(requestsOfAll("rows."+server))),
		d.hear(svc),
	)
}

// hear adds the subject of accusations alone.
func (d *desk) hear(svc micro.Service) error {
	return svc.AddEndpoint("accuse", micro.HandlerFunc(d.accuse), micro.WithEndpointSubject(requestsOfAll("accuse")), micro.WithEndpointQueueGroupDisabled())
}

// close waits for the requests under way.
func (d *desk) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.stop()
	d.wg.Wait()
}

// from is the home that asks, if the answer goes to it too.
func from(r micro.Request) (ids.Home, bool) {
	home, err := strconv.ParseUint(asker(r.Subject()), 10, ids.HomeBits)
	return ids.Home(home), err == nil && (r.Reply() == "" || strings.HasPrefix(r.Reply(), answers(ids.Home(home))+"."))
}

func (d *desk) do(r micro.Request) {
	home, ok := from(r)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return // another server answers when it is asked again
	}
	select {
	case d.room <- struct{}{}:
	case <-d.ctx.Done():
		return
	}
	d.wg.Go(func() {
		defer func() { <-d.room }()
		ctx, cancel := context.WithTimeout(d.ctx, attemptTime)
		defer cancel()
		_ = r.RespondJSON(newOutcome(d.decide(ctx, home, r.Data()))) // who does not hear it asks again
	})
}

// decide makes a call, if the home may.
func (d *desk) decide(ctx context.Context, home ids.Home, data []byte) gcs.Answered {
	var c call
	if err := json.Unmarshal(data, &c); err != nil {
		return gcs.Answered{Err: errs.New(errs.CodeInvalid, "control plane: a request that cannot be read: %v", err)}
	}
	e, err := c.effect()
	if err != nil {
		return gcs.Answered{Err: errs.New(errs.CodeInvalid, "%v", err)}
	}
	bucket, key, changes := gcs.Touches(e)
	if !changes {
		return d.tables.Do(ctx, e)
	}
	row := d.tables.Do(ctx, gcs.Read{Bucket: gcs.Homes, Key: home.String()})
	var present gcs.Answered
	if c.Revision >= 0 {
		present = d.tables.Do(ctx, gcs.Read{Bucket: bucket, Key: key})
		if present.Err == nil && uint64(c.Revision) != present.Revision {
			return gcs.Answered{Wrote: true, Conflict: true}
		}
	}
	if err := errors.Join(row.Err, present.Err); err != nil {
		return gcs.Answered{Err: err}
	}
	var of *gcs.HomeRecord
	if h, ok := row.Record.(gcs.HomeRecord); ok {
		of = &h
	}
	if err := d.refuses(e, remote.Life{Home: home, Epoch: c.Epoch}, of, present.Record); err != nil {
		return gcs.Answered{Err: err}
	}
	return d.tables.Do(ctx, e)
}

func (d *desk) giveRows(r micro.Request) {
	if _, ok := from(r); ok && r.Reply() != "" {
		d.feed.give(r.Reply())
	}
}

// accuse has the judge here know of an accusation.
func (d *desk) accuse(r micro.Request) {
	var l remote.Life
	if by, ok := from(r); ok && json.Unmarshal(r.Data(), &l) == nil {
		d.accused(gcs.Accused{By: by, Life: l})
	}
}

// accuse tells all judges that a home does not hear a life.
func accuse(nc *nats.Conn, home ids.Home, l remote.Life) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return nc.Publish(requests(home, "accuse"), data)
}
