//go:build invariants

package worker

import "bytes"

// poison fills a stored argument after its call has returned.
const poison = 0xDB

// loans hand a call private copies of its stored arguments and poison them when it
// returns, so that the use of a slice kept too long shows.
type loans struct{ out [][]byte }

func (l *loans) lend(data []byte) []byte {
	c := bytes.Clone(data)
	l.out = append(l.out, c)
	return c
}

func (l *loans) giveBack() {
	for _, c := range l.out {
		for i := range c {
			c[i] = poison
		}
	}
	clear(l.out)
	l.out = l.out[:0]
}
