package netns

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Traffic is what has gone over a host's cable since it was made, in bytes with the heads of packets.
type Traffic struct{ In, Out int64 }

// Since is what came after an earlier reading.
func (t Traffic) Since(before Traffic) Traffic { return Traffic{t.In - before.In, t.Out - before.Out} }

// Traffic reads the counters of the host's interface.
func (h *Host) Traffic() (t Traffic, err error) {
	var text []byte
	err = h.Do(func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/dev")
		return err
	})
	if err != nil {
		return t, err
	}
	for line := range strings.Lines(string(text)) {
		name, counts, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) != cable {
			continue
		}
		const in, out, all = 0, 8, 16
		fields := strings.Fields(counts)
		if len(fields) < all {
			break
		}
		var bad [2]error
		t.In, bad[0] = strconv.ParseInt(fields[in], 10, 64)
		t.Out, bad[1] = strconv.ParseInt(fields[out], 10, 64)
		return t, errors.Join(bad[:]...)
	}
	return t, fmt.Errorf("netns: %s has no counters of %s", h.namespace, cable)
}
