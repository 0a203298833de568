package node

import (
	"mobula/actors"
	"mobula/raylet/owner"
	"mobula/wire"
)

type observer struct{}

func (observer) component(actors.Event)               {}
func (n *Node) watching() bool                        { return false }
func (n *Node) observe([]owner.Transition)            {}
func (n *Node) workerStats(s *session, m *wire.Stats) {}
func (n *Node) cold(s *session, m *wire.Request)      {}
