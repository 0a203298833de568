package worker

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"

	"mobula/internal/errs"
)

// fault is the runtime's error of a memory access that is not allowed.
type fault interface {
	runtime.Error
	Addr() uintptr
}

// faulted is the text of a panic. It explains a fault in the user's terms: values given to a task, and views, lie in memory that is
// mapped read-only.
func faulted(p any) string {
	f, ok := p.(fault)
	if !ok {
		return errs.Text(p)
	}
	switch perms := permissions(f.Addr()); {
	case perms == "":
		return fmt.Sprintf("it used memory at %#x that is not there: is it a value's that was read after its view was closed, or after its task? (%v)", f.Addr(), p)
	case strings.HasPrefix(perms, "r-"):
		return fmt.Sprintf("it wrote to a value that is read-only, at %#x: arguments and views are shared with others; change a copy (slices.Clone) (%v)", f.Addr(), p)
	}
	return fmt.Sprintf("fault at %#x: %v", f.Addr(), p)
}

// permissions are the permissions of the mapping at an address, as "r--s"; empty if there is none.
func permissions(addr uintptr) string {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // it was only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to uintptr
		var perms string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &perms); err == nil && from <= addr && addr < to {
			return perms
		}
	}
	return ""
}
