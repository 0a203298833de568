package model

import "slices"

// message is something that is gossiped about a node.
type message struct {
	about       int32
	from        int32 // who suspects it, or has given it up
	incarnation uint32
	says        standing
}

// standing is what is said or believed of a node.
type standing uint8

const (
	alive standing = iota
	suspected
	dead
)

// size is how many bytes the message has: keys, a name or two, and of a living node what it says of itself.
func (m message) size(meta int) int {
	if m.says == alive {
		return 72 + meta
	}
	return 47
}

// smallest is what the smallest message takes of a packet.
const smallest = 49

// queue is what a node has to gossip: the fewer times a message was sent, the sooner, and of those the latest first. A message about a node takes the place of the
// one before.
type queue struct {
	tiers   [][]*queued // by how often it was sent
	byAbout map[int32]*queued
}

type queued struct {
	message
	gone bool // another has taken its place
}

func newQueue() queue { return queue{byAbout: make(map[int32]*queued)} }

func (q *queue) empty() bool { return len(q.byAbout) == 0 }

func (q *queue) add(m message) {
	if was := q.byAbout[m.about]; was != nil {
		was.gone = true
	}
	b := &queued{message: m}
	q.byAbout[m.about] = b
	q.put(0, b)
}

func (q *queue) put(tier int, b *queued) {
	for len(q.tiers) <= tier {
		q.tiers = append(q.tiers, nil)
	}
	q.tiers[tier] = append(q.tiers[tier], b)
}

// take gives messages that fit into so many bytes. Each is sent limit times.
func (q *queue) take(room, limit, meta int) (out []message, bytes int) {
	var again [][]*queued
	for tier, list := range q.tiers {
		var sent, kept []*queued
		i := len(list) - 1
		for ; i >= 0 && bytes+smallest <= room; i-- {
			b := list[i]
			size := b.size(meta) + 2
			switch {
			case b.gone:
			case bytes+size > room:
				kept = append(kept, b)
			default:
				bytes += size
				out = append(out, b.message)
				if tier+1 >= limit {
					delete(q.byAbout, b.about)
				} else {
					sent = append(sent, b)
				}
			}
		}
		for _, b := range slices.Backward(kept) {
			i++
			list[i] = b
		}
		clear(list[i+1:])
		q.tiers[tier] = list[:i+1]
		again = append(again, sent)
	}
	for tier, sent := range again {
		for _, b := range slices.Backward(sent) {
			q.put(tier+1, b)
		}
	}
	return out, bytes
}
