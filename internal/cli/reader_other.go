//go:build !unix

package cli

// Unread reports whether standard output is a pipe that nobody reads any more, where that can be
// known.
func (c *Common) Unread() bool { return false }
