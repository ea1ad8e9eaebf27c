// Package lua holds the scripts that decide and record inside Redis.
package lua

import "embed"

//go:embed *.lua
var files embed.FS

// Names are the scripts of a ledger. The header of each names its keys, arguments and reply. That of
// the limiter, "limit", is not among them.
var Names = []string{
	"charge", "commit", "release", "cancel", "suspend", "usage", "sums", "mend", "claim",
}

// Source is the script of that name, behind what it knows of a bucket and of reservations. A claim
// and the limiter know nothing of buckets.
func Source(name string) string {
	if name == "claim" || name == "limit" {
		return text(name)
	}
	return text("bucket") + text("holds") + text(name)
}

func text(name string) string {
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(err) // it is no script of this package
	}
	return string(text)
}
