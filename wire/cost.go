package wire

import "mobula/internal/ids"

// Cost is the number of bytes that a message counts against a client's Credit: an estimate
// of what the owner keeps for it. Client and owner must agree on it.
func Cost(m Msg) int64 {
	switch m := m.(type) {
	case *Submit:
		return CostOfSpec(m.Spec)
	case *PutValue:
		return CostOfValue(&m.Value)
	}
	return 0
}

const taskCost = 512 // bytes of a task's record without its values

// CostOfSpec is the cost of a Submit.
func CostOfSpec(s *TaskSpec) int64 {
	n := int64(taskCost)
	for i := range s.Args {
		n += CostOfValue(&s.Args[i].Value)
	}
	return n
}

// CostOfValue is the cost of a PutValue.
func CostOfValue(v *Value) int64 {
	return 64 + int64(len(v.Meta)+len(v.Data)) + int64(ids.ObjectSize*len(v.Refs))
}
