package shell

import (
	"context"
	"fmt"

	"mobula/internal/errs"
	"mobula/remote/membership"
)

// Address is where this node gossips.
func (m *Membership) Address() string { return m.cfg.Core.Self.Addresses.Gossip }

// Keys is the ring of keys; nil where nothing is encrypted.
func (m *Membership) Keys() *Keys { return m.keys }

// SetKeys has other keys encrypt the gossip: see Keys.Set.
func (m *Membership) SetKeys(keys [][]byte) error { return m.keys.Set(keys) }

// Tell passes on what the control plane or the connections say: Beat, Fenced, Leaving, Connected, Broken, NobodyListens.
func (m *Membership) Tell(ev membership.Event) error {
	a, ok := aboutTold(ev)
	if !ok {
		return errs.New(errs.CodeInvalid, "membership: %T comes from the gossip or the node itself", ev)
	}
	m.news.add(a, ev)
	return nil
}

// SetLoad has this node's load gossiped, when it is its turn. A later load has a higher version.
func (m *Membership) SetLoad(r membership.Report) error {
	if len(r.Bytes) > membership.MaxLoad || r.Version == 0 {
		return errs.New(errs.CodeInvalid, "membership: load %d of %d bytes; loads are numbered from 1 and have at most %d bytes", r.Version, len(r.Bytes), membership.MaxLoad)
	}
	m.mu.Lock()
	m.report = r
	m.mu.Unlock()
	if err := m.ref.Post(r); err != nil {
		return fmt.Errorf("membership: %w", err)
	}
	return nil
}

// Members is what is believed of all nodes, by home.
func (m *Membership) Members(ctx context.Context) ([]membership.Member, error) {
	answer := make(chan []membership.Member, 1)
	m.mu.Lock()
	m.lastID++
	id := m.lastID
	m.lists[id] = answer
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.lists, id)
		m.mu.Unlock()
	}()
	if err := m.ref.Send(ctx, membership.List{ID: id}); err != nil {
		return nil, fmt.Errorf("membership: %w", err)
	}
	select {
	case out := <-answer:
		return out, nil
	case <-m.ref.Done():
		return nil, errStopped()
	case <-ctx.Done():
		return nil, fmt.Errorf("membership: %w", context.Cause(ctx))
	}
}
