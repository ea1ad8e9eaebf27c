// Package lua holds the scripts that decide and record inside Redis.
package lua

import "embed"

//go:embed *.lua
var files embed.FS

// Names are the scripts. The header of each names its keys, arguments and reply.
var Names = []string{
	"charge", "commit", "release", "cancel", "suspend", "usage", "sums", "mend", "claim",
}

// Source is the script of that name, behind what it knows of a bucket and of reservations. A claim
// knows nothing of buckets.
func Source(name string) string {
	if name == "claim" {
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
