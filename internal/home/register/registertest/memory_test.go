package registertest

import "testing"

func TestMemory(t *testing.T) { Conform(t, new(Memory), nil) }
