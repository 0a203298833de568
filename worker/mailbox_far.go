package worker

import (
	"mobula/internal/direct"
	"mobula/internal/direct/talk"
	"mobula/internal/direct/wired"
	"mobula/wire"
)

// This file is calls that come straight from another process, by a channel to an instance here.

// farCall is such a call.
type farCall struct {
	*wire.Call
	from *wired.Host
}

// TaskSpec implements talk.Straight.
func (k *farCall) TaskSpec() *wire.TaskSpec { return k.Spec }

// Arguments implements talk.Straight.
func (k *farCall) Arguments() []wire.ArgValue { return k.Values }

// Announce implements talk.Straight. The caller's process tells the owner, and says when that knows.
func (k *farCall) Announce() error {
	if err := k.from.Share(k.No); err != nil {
		return err
	}
	return nil
}

var _ talk.Straight = (*farCall)(nil)

// hostChannel opens the end of a channel. Where the instance has ended, the other side reads its end, and asks.
func (e *Executor) hostChannel(m *wire.HostChannel) {
	if m.Opened == nil {
		e.log.Error("the end of a channel has come without its descriptor", "instance", m.Instance, "channel", m.Channel, "caller", m.Caller)
		return
	}
	h := e.hostOf(m.Instance)
	if h == nil || !h.lives() {
		_ = m.Opened.Close() // nobody uses it
		return
	}
	x, err := wired.OpenHost(m.Opened, h.box, direct.Channel(m.Channel), func(from *wired.Host, k *wire.Call) any { return &farCall{Call: k, from: from} })
	if err != nil {
		e.log.Warn("the end of a channel was not opened", "actor", h.a.id, "channel", m.Channel, "caller", m.Caller, "err", err)
		return
	}
	h.mu.Lock()
	h.channels = append(h.channels, x)
	h.mu.Unlock()
}

// sweepChannelsLocked forgets channels that have ended. mu is held.
func (h *hosted) sweepChannelsLocked() {
	kept := h.channels[:0]
	for _, x := range h.channels {
		select {
		case <-x.Done():
		default:
			kept = append(kept, x)
		}
	}
	clear(h.channels[len(kept):])
	h.channels = kept
}

// closeChannels ends them when what was said is written, as the process closes.
func (h *hosted) closeChannels() {
	h.mu.Lock()
	all := h.channels
	h.channels = nil
	h.mu.Unlock()
	for _, x := range all {
		x.Close()
	}
}
