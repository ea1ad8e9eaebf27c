package limit

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// The problem types of a denial, and of a server that cannot decide or is overloaded.
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
	var policies, limits []string
	for _, item := range items {
		name := quoted(item.Name)
		policy := fmt.Sprintf("%s;q=%d", name, item.Units)
		if item.Window > 0 {
			policy += fmt.Sprintf(";w=%d", words.Seconds(item.Window))
		}
		limit := fmt.Sprintf("%s;r=%d", name, item.Remaining)
		if item.Next >= 0 {
			limit += fmt.Sprintf(";t=%d", words.Seconds(item.Next))
		}
		policies, limits = append(policies, policy), append(limits, limit)
	}
	h.Set("RateLimit-Policy", strings.Join(policies, ", "))
	h.Set("RateLimit", strings.Join(limits, ", "))
}

// SetQuotaHeader sets the RateLimit fields of the limits on a decision's buckets. denies is the
// limit that denies, "" if the decision allows; only the ledger can compute when the others have
// more. If denies is the limit of a label's value, the fields contain only that value's limits,
// because the decision's remaining units are those of that value.
func SetQuotaHeader(h http.Header, b *quota.Budget, d quota.Decision, manual bool, denies string) {
	buckets := slices.Sorted(maps.Keys(d.Remaining))
	if bucket, _, _ := strings.Cut(denies, " "); quota.IsLabelBucket(bucket) {
		buckets = []string{strings.TrimSuffix(bucket, "(none)")}
	}
	var items []HeaderItem
	for _, bucket := range buckets {
		base, _, _ := strings.Cut(bucket, "@")
		for _, l := range b.LimitsOn(bucket) {
			item := HeaderItem{Name: l.Name(), Units: l.Cap(manual),
				Window: lengthAt(l.Window, d.At), Remaining: max(0, d.Remaining[base]), Next: -1}
			if item.Name == denies {
				item.Next = d.RetryAfter()
			}
			items = append(items, item)
		}
	}
	SetHeader(h, items)
}

// lengthAt returns the length of a window at a moment, 0 if it has none.
func lengthAt(w quota.Window, at time.Time) time.Duration {
	if w.IsCalendar() {
		start, end := w.Bounds(at)
		return end.Sub(start)
	}
	return w.Length
}

// quoted returns a name as a string of RFC 9651, which allows only printable ASCII.
func quoted(name string) string {
	return `"` + escape.Replace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, name)) + `"`
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
