// Package spill writes objects out of the shared segment to spill storage and reads them back.
package spill
