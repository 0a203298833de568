package worker

import (
	"testing"
	"unsafe"
)

// Each task allocates a call: above 288 bytes the heap's next size is 320.
func TestACallStaysInItsSizeClass(t *testing.T) {
	if n := unsafe.Sizeof(call{}); n > 288 {
		t.Errorf("a call has %d bytes", n)
	}
}
