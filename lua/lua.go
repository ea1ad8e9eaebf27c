// Package lua holds the scripts that run inside Redis.
package lua

import "embed"

//go:embed *.lua
var files embed.FS

// Names are the scripts of a ledger, without "limit", which is the limiter's. The header of each
// names its keys, arguments and reply.
var Names = []string{"charge", "read", "commit", "search"}

// Source returns the script of that name.
func Source(name string) string {
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(err) // no script has that name
	}
	return string(text)
}
