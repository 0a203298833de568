package netns

import (
	"context"
	"fmt"
)

// Cut pulls the host's cable out of the bridge: nothing reaches the host or leaves it, and neither side is told.
func (h *Host) Cut(ctx context.Context) error { return ip(ctx, h.hub, "link set "+h.port+" down") }

// Heal puts the cable back.
func (h *Host) Heal(ctx context.Context) error { return ip(ctx, h.hub, "link set "+h.port+" up") }

// Part takes the routes between two hosts away, both ways.
func Part(ctx context.Context, a, b *Host) error { return between(ctx, a, b, "add") }

// Join gives parted hosts their routes back.
func Join(ctx context.Context, a, b *Host) error { return between(ctx, a, b, "del") }

func between(ctx context.Context, a, b *Host, do string) error {
	if err := ip(ctx, a.namespace, fmt.Sprintf("route %s blackhole %v/32", do, b.Addr)); err != nil {
		return err
	}
	return ip(ctx, b.namespace, fmt.Sprintf("route %s blackhole %v/32", do, a.Addr))
}
