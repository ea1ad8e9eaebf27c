//go:build !linux

package job

// followStops does nothing here: the keys of a terminal stop this process by themselves.
func (c *child) followStops() {}
