package sqlite

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// uriPath escapes the three special characters in the path of a SQLite URI.
func uriPath(path string) string {
	return strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
}

// writeDSN has no journal_mode: it is a property of the file, which is changed only after its kind
// is checked.
func writeDSN(path string) string {
	q := commonParams(0) // see Lock
	q.Set("mode", "rw")
	q.Set("_txlock", "immediate")
	q.Add("_pragma", "synchronous(full)") // a power cut loses nothing that was committed
	return "file:" + uriPath(path) + "?" + q.Encode()
}

func readDSN(path string) string {
	q := commonParams(BusyTimeout)
	q.Set("mode", "ro")
	q.Set("_query_only", "1")
	return "file:" + uriPath(path) + "?" + q.Encode()
}

// immutableDSN is for a file without a log in a read-only directory, where SQLite cannot create
// the files that readers and writers coordinate by. SQLite then assumes that the file does not
// change.
func immutableDSN(path string) string { return readDSN(path) + "&immutable=1" }

func commonParams(busyTimeout time.Duration) url.Values {
	return url.Values{
		"_error_rc": {"1"}, // errors contain no stale text of earlier statements
		"_dqs":      {"0"}, // "x" is a name, never a string
		"_pragma": {
			fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
			"foreign_keys(1)",
			"temp_store(memory)",
		},
	}
}
