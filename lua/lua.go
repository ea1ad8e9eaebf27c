// Package lua holds the scripts that decide and record inside Redis.
package lua

import "embed"

//go:embed *.lua
var files embed.FS

// Names are the scripts of a ledger, without "limit", which is the limiter's. The header of each
// names its keys, arguments and reply.
var Names = []string{
	"charge", "settle", "extend", "release", "learn", "lapse", "cancel", "adjust", "suspend", "usage",
	"sums", "mend", "claim",
}

// Source is the script of that name, behind those that read and write buckets and reservations and,
// where it needs them, those on windows and entries. Claims and the limiter need none of these.
func Source(name string) string {
	switch name {
	case "claim", "limit":
		return text(name)
	case "charge", "usage", "learn":
		return text("bucket") + text("holds") + text("windows") + text(name)
	case "settle", "cancel":
		return text("bucket") + text("holds") + text("windows") + text("rewrite") + text(name)
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
