//go:build !linux

package doctor

// diskOf supports no other systems.
func diskOf(string) (disk, bool) { return disk{}, false }
