package report

import "runtime/debug"

// stamped is set by the linker (-X quotabudget/internal/report.stamped=v1.2.3) where there is no
// repository to read it from.
var stamped string

// Version returns the version of the program, and the Go version that built it.
func Version() (program, toolchain string) {
	program, toolchain = "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		program, toolchain = info.Main.Version, info.GoVersion
	}
	if stamped != "" {
		program = stamped
	}
	return program, toolchain
}
