package gcs

import (
	"slices"
	"testing"
	"time"
)

// A feed says that it lives when it has told nothing for a second and a half, whatever the moments at which heartbeats come each second, and nothing once the
// tables have shown no change for fifteen seconds.
func TestAFeedSaysThatItLives(t *testing.T) {
	const tick = 10 * time.Millisecond
	lives := func(until time.Duration, tells, changes func(now time.Duration) bool) (said []time.Duration) {
		a, look := NewAlive(0), time.Duration(0)
		for now := time.Duration(0); now < until; now += tick {
			if changes(now) {
				a.Changed(int64(now))
			}
			if tells(now) {
				a.Said(int64(now))
			}
			if now >= look {
				say, wait := a.Due(int64(now))
				if say {
					said = append(said, now)
				}
				look = now + wait
			}
		}
		return said
	}
	early := func(now time.Duration) bool { // each second, and every third time 300 ms before it
		second := now % (3 * time.Second)
		return second == 0 || second == time.Second || second == 1700*time.Millisecond
	}
	never := func(time.Duration) bool { return false }
	if said := lives(time.Hour, early, early); len(said) != 0 {
		t.Errorf("beside heartbeats it says that it lives at %v", said[:min(len(said), 5)])
	}
	if said := lives(4*time.Second, func(now time.Duration) bool { return now == time.Second }, never); !slices.Equal(said, []time.Duration{2500 * time.Millisecond}) {
		t.Errorf("after something was told a second after the start, it says that it lives at %v", said)
	}
	said := lives(time.Minute, never, func(now time.Duration) bool { return now == 10*time.Second })
	var want []time.Duration
	for at := aliveAfter; at < 10*time.Second+staleAfter; at += aliveAfter {
		want = append(want, at)
	}
	if !slices.Equal(said, want) {
		t.Errorf("it says that it lives at %v, want %v", said, want)
	}
}
