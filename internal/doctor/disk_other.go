//go:build !linux

package doctor

// diskOf knows no other systems.
func diskOf(string) (disk, bool) { return disk{}, false }
