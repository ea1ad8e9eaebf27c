package main

import (
	"testing"

	"quotabudget/internal/ledger/redistest"
)

// Without the ledger, a person sees the units that may still be spent and the entries waiting to be
// recorded. The next call with the ledger records these.
func TestWithoutLedger(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{AOF: true})
	s := newShell(t, server.URL(), "credentials: [{name: key1, when_unreachable: "+
		"{open: [youtube.videos.list], at_most: 3}}]\n")
	spend := []string{"spend", "--method", "youtube.videos.list"}
	s.want(0, "charged 1 unit", spend...)
	server.Kill()
	s.want(127, "no-such-program", "exec", "--method", "youtube.videos.list", "--count", "3", "--",
		"no-such-program") // takes nothing
	s.want(0, "left=map[default:1]", "exec", "--method", "youtube.videos.list", "--count", "2", "--",
		"true")
	s.want(125, "at_most is spent", "exec", "--method", "youtube.videos.list",
		"--count", "2", "--", "true")
	s.want(0, "charged 1 unit of default without the ledger, which cannot be reached",
		spend...)
	s.want(69, "at_most is spent", spend...)
	s.want(69, "key1 may spend 0 of 3 units of default without the ledger; "+
		"2 calls wait in the journal", "status")
	s.want(69, "ledger cannot be reached", "spend", "--method", "youtube.search.list")
	server.Restart(t)
	s.want(0, "charged 1 unit", spend...)
	s.want(0, "journal  default      3        2", "log", "--by", "source")
	s.want(0, `"used":5,`, "status", "-o", "json")
}
