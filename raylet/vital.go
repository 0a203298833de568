package raylet

import (
	"mobula/raylet/pool"
	"mobula/raylet/sched"
)

// Vital tells of an event that a core must step, since nobody says it again to the next one: that is told which processes there are, and by the owners what they hold and
// want.
func Vital(ev Event) bool {
	switch ev := ev.(type) {
	case OfJob:
		return Vital(ev.Event)
	case sched.KillWorker, sched.DrainWorker, sched.SetPaused, pool.Disconnected, pool.Worn, pool.Stop:
		return true
	}
	return false
}
