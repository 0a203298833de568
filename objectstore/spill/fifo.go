package spill

// fifo is a queue of requests.
type fifo struct {
	items []request
	head  int
}

func (q *fifo) len() int       { return len(q.items) - q.head }
func (q *fifo) push(r request) { q.items = append(q.items, r) }
func (q *fifo) peek() request  { return q.items[q.head] }

func (q *fifo) pop() (request, bool) {
	if q.len() == 0 {
		return request{}, false
	}
	r := q.items[q.head]
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head >= 256 && q.head*2 > len(q.items) {
		q.items = append(q.items[:0], q.items[q.head:]...)
		q.head = 0
	}
	return r, true
}
