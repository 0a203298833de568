package release

import (
	"runtime/debug"
	"strings"
)

// Version is the release under development, or just released.
const Version = "0.9.0"

// module is the path that this module is imported by.
const module = "mobula"

// Build is the version of Mobula in this binary: the module's tag, as "v0.4.0", or
// "v0.4.0-devel" where it was built from no tag.
func Build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return devel
	}
	return of(info)
}

// IsOfPackage tells whether a version of the Python package, such as "0.4.0" or "0.4.0.dev0", belongs to this
// release.
func IsOfPackage(version string) bool {
	rest, ok := strings.CutPrefix(version, Version)
	return ok && (rest == "" || strings.HasPrefix(rest, "."))
}

const devel = "v" + Version + "-devel"

// of finds this module among those of a binary, whose main module may be another program.
func of(info *debug.BuildInfo) string {
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module && m.Version == "v"+Version {
			return m.Version
		}
	}
	return devel
}
