package proxy

import (
	"math"
	"runtime/debug"
)

const ballast = 64 << 20 // bytes

// Ballast is for a program that serves many requests to keep while it does (runtime.KeepAlive). The
// heap of a proxy is a few MiB, and is collected when it has doubled: dozens of times a second, for
// up to a tenth of the processor's time. Beside the ballast it may grow by 64 MiB first. The ballast
// itself is never touched, so it takes no memory. A program with a GOMEMLIMIT, for which it would
// count all the same, gets none.
func Ballast() []byte {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return nil
	}
	return make([]byte, ballast)
}
