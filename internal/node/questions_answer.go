package node

import (
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/internode"
)

const (
	atWork     = 2 * time.Second // how often a node says that it is at work on an answer
	answerPart = 1 << 20         // bytes: messages of tasks go in between
)

// take answers a question of another node, beside everything else. It does not block.
func (q *questions) take(node ids.Home, m *internode.Ask) {
	if !q.enter(node) {
		q.links.say(node, &internode.Answer{ID: m.ID, Last: true, Err: errs.New(errs.CodeBacklog, "%s: %d questions of this node wait already", m.Method, maxColdWaiting)})
		return
	}
	body := make(chan outcome, 1)
	q.work.Go(func() {
		b, err := q.requests.answerNode(m)
		body <- outcome{b, errs.From(err)}
	})
	q.work.Go(func() {
		defer q.leave(node)
		q.reply(node, m.ID, body)
	})
}

// outcome is what a node says to a question.
type outcome struct {
	body []byte
	err  *errs.Error
}

// reply sends an answer in parts when it is there, and before that, now and then, that it is not there yet.
func (q *questions) reply(node ids.Home, id uint64, answers <-chan outcome) {
	number := uint32(0)
	say := func(part []byte, last bool, err *errs.Error) {
		q.links.say(node, &internode.Answer{ID: id, Part: number, Last: last, Body: part, Err: err})
		number++
	}
	t := time.NewTicker(atWork)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			say(nil, false, nil)
			continue
		case a := <-answers:
			box := q.links.box(node)
			for len(a.body) > answerPart && box.Await(q.life) == nil {
				say(a.body[:answerPart], false, nil)
				a.body = a.body[answerPart:]
			}
			say(a.body, true, a.err)
			return
		}
	}
}

// enter lets a question in, if the node has not too many here.
func (q *questions) enter(node ids.Home) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asked[node] >= maxColdWaiting {
		return false
	}
	q.asked[node]++
	return true
}

func (q *questions) leave(node ids.Home) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asked[node]--; q.asked[node] == 0 {
		delete(q.asked, node)
	}
}
