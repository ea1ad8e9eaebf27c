// Package lua holds the scripts that decide and record inside Redis.
package lua

import (
	"embed"
	"slices"
)

//go:embed *.lua
var files embed.FS

// Names are the scripts of a ledger, without "limit", which is the limiter's. The header of each
// names its keys, arguments and reply.
var Names = []string{
	"charge", "settle", "extend", "release", "learn", "lapse", "cancel", "adjust", "suspend",
	"usage", "sums", "mend", "claim",
}

// parts are what stands before a script in its source: functions to read and write buckets and
// reservations, and what else it needs. Making a function takes time, so no script has more.
var parts = map[string][]string{
	"claim": {}, "limit": {},
	"charge": {"entry", "search", "plain", "window", "plain_hold", "bucket", "holds", "lapses",
		"windows", "fits"},
	"usage":  {"entry", "search", "bucket", "holds", "lapses", "windows", "fits"},
	"learn":  {"entry", "bucket", "holds", "lapses", "windows"},
	"settle": {"entry", "plain_settle", "bucket", "holds", "lapses", "windows", "rewrite"},
	"cancel": {"entry", "bucket", "holds", "lapses", "windows", "rewrite"},
}

// Source is the script of that name, behind its parts.
func Source(name string) string {
	before, ok := parts[name]
	if !ok {
		before = []string{"entry", "bucket", "holds", "lapses"}
	}
	var source string
	for _, part := range append(slices.Clip(before), name) {
		source += text(part)
	}
	return source
}

func text(name string) string {
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(err) // it is no script of this package
	}
	return string(text)
}
