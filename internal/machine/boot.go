package machine

import (
	"os"
	"strings"
)

// Boot is the machine's boot id, which differs after each start. It is empty if unknown.
func Boot() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
