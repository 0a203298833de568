package direct

// This file is the way out where two cores have panicked on one event: calls end, and whoever waits for them hears so.

// Fail ends those of some calls that have not ended, without a core. What it gives is to be done, then a new core is to be made.
func Fail(calls []*Call, o *Outcome) (effects []Effect) {
	for _, k := range calls {
		s := &k.kept
		switch s.stage {
		case late:
			s.stage = ended
			k.standing = *s
			continue
		case ended:
			continue
		case inLine, onChannel, withOwner:
		}
		submitted := s.stage == withOwner
		s.stage, s.outcome = ended, o
		effects = append(effects, Effect{Do: Settle, Call: k, Outcome: o})
		if s.adopted && !submitted {
			effects = append(effects, Effect{Do: Report, Call: k, Outcome: o})
		}
		k.standing = *s
	}
	return effects
}

// Clear empties a memory. What it gives is to be done.
func (m *Memory) Clear() (effects []Effect) {
	for _, f := range m.channels {
		effects = append(effects, Effect{Do: HangUp, Channel: f.id})
	}
	*m = Memory{order: m.order}
	return effects
}
