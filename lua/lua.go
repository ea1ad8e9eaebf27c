// Package lua holds the scripts that decide and record inside Redis.
package lua

import "embed"

//go:embed *.lua
var files embed.FS

// Names are the scripts of a ledger, without "limit", which is the limiter's. The header of the last
// file of each names its keys, arguments and reply.
var Names = []string{
	"charge", "hold", "settle", "extend", "release", "learn", "lapse", "cancel", "adjust", "suspend",
	"usage", "sums", "mend", "claim",
}

// parts are the files of a script: functions to read and write buckets and reservations, and what
// else it needs. Making a function takes time, so no script has more, and what decides most calls
// stands as far ahead as it can.
var parts = map[string][]string{
	"charge": {"entry", "start", "search", "plain", "bucket", "holds", "lapses", "windows",
		"fits", "charge"},
	"hold": {"entry", "start", "plain_hold", "search", "bucket", "holds", "lapses", "windows",
		"fits", "charge"},
	"usage": {"entry", "start", "search", "bucket", "holds", "lapses", "windows", "fits", "usage"},
	"learn": {"entry", "start", "bucket", "holds", "lapses", "windows", "learn"},
	"settle": {"entry", "plain_settle", "start", "bucket", "holds", "lapses", "windows",
		"rewrite", "settle"},
	"cancel": {"entry", "start", "bucket", "holds", "lapses", "windows", "rewrite", "cancel"},
	"claim":  {"claim"},
	"limit":  {"limit"},
}

// Source is the script of that name.
func Source(name string) string {
	all, ok := parts[name]
	if !ok {
		all = []string{"entry", "start", "bucket", "holds", "lapses", name}
	}
	var source string
	for _, part := range all {
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
