package call

import (
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// callsiteEvery: looking up the caller costs half a microsecond, so few calls pay it.
const callsiteEvery = 128

var callsites sync.Map // [siteDepth]uintptr -> "file.go:12"

const siteDepth = 8 // frames from Begin's caller that reach user code

// callsite is the first caller of a generated handle: of a method in one of package mobula's files zz_*.go.
func callsite() string {
	var pcs [siteDepth]uintptr
	n := runtime.Callers(3, pcs[:])
	if s, ok := callsites.Load(pcs); ok {
		return s.(string)
	}
	site := ""
	frames := runtime.CallersFrames(pcs[:n])
	for handle, more := false, n > 0; more; {
		var f runtime.Frame
		f, more = frames.Next()
		file := f.File[strings.LastIndexByte(f.File, '/')+1:]
		if strings.HasPrefix(file, "zz_") && strings.HasPrefix(f.Function, "mobula.") {
			handle = true
		} else if handle {
			site = file + ":" + strconv.Itoa(f.Line)
			break
		}
	}
	callsites.Store(pcs, site)
	return site
}
