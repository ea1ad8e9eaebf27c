package limit

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/words"
)

// The problem types of a denial, and of a server that cannot decide or has to wait.
const (
	QuotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	ReducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// HeaderItem is the state of one limit.
type HeaderItem struct {
	Name      string
	Units     int64
	Window    time.Duration // 0 for none
	Remaining int64
	// Next is the time until more fits; negative to leave it out.
	Next time.Duration
}

// SetHeader sets RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers). On a denial
// only the limits that deny should have a Next: the draft allows none later than Retry-After.
func SetHeader(h http.Header, items []HeaderItem) {
	if len(items) == 0 {
		return
	}
	var policies, limits []byte
	for i, item := range items {
		if i > 0 {
			policies, limits = append(policies, ", "...), append(limits, ", "...)
		}
		policies = appendName(policies, item.Name)
		policies = strconv.AppendInt(append(policies, ";q="...), item.Units, 10)
		if item.Window > 0 {
			policies = strconv.AppendInt(append(policies, ";w="...), words.Seconds(item.Window), 10)
		}
		limits = appendName(limits, item.Name)
		limits = strconv.AppendInt(append(limits, ";r="...), item.Remaining, 10)
		if item.Next >= 0 {
			limits = strconv.AppendInt(append(limits, ";t="...), words.Seconds(item.Next), 10)
		}
	}
	h.Set("RateLimit-Policy", string(policies))
	h.Set("RateLimit", string(limits))
}

// appendName appends a name as a string of RFC 9651, which has printable ASCII only.
func appendName(to []byte, name string) []byte {
	printable := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, name)
	return append(append(append(to, '"'), escape.Replace(printable)...), '"')
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
