//go:build !unix

package cli

// Unread reports whether standard output is a pipe without a reader. It is always false here.
func (c *Common) Unread() bool { return false }
