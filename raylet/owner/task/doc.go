// Package task is the state machine of one task: its states, the events that move it, and
// the table of what is legal. It holds no state and does nothing else; package owner owns
// the records and keeps each in step with this table.
//
// The state is of the task's latest attempt. Cancellation is a flag of the record that
// becomes a state only when the task has ended. What a worker's death does to its tasks is
// decided in raylet/owner/deaths.go.
package task
