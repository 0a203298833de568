package machine

import (
	"os"
	"strings"
)

// Boot names this run of the machine: another one after each start. Empty where that cannot be told.
func Boot() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
