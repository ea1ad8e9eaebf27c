// Package version says which version of the programs this is.
package version

import "runtime/debug"

// stamped is set by the linker (-X quotabudget/internal/version.stamped=v1.2.3) where there is no
// repository to read it from.
var stamped string

// Of is the version of the program, and that of the Go it was built with.
func Of() (program, toolchain string) {
	program, toolchain = "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		program, toolchain = info.Main.Version, info.GoVersion
	}
	if stamped != "" {
		program = stamped
	}
	return program, toolchain
}
