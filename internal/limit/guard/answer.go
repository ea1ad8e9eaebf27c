package guard

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/limit"
)

// problem is the body of a denial (RFC 9457).
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Violated []string `json:"violated-policies,omitempty"`
}

// The problem types are those of draft-ietf-httpapi-ratelimit-headers.
const (
	quotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// fields sets RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers for each
// policy, and X-RateLimit-* for the one of which least is left.
func fields(h http.Header, asks []limit.Ask) {
	var policies, limits []string
	var tightest *limit.Ask
	for i := range asks {
		a := &asks[i]
		if a.Cost == 0 {
			continue
		}
		name := quote(a.Policy.Name)
		policies = append(policies,
			name+";q="+itoa(a.Policy.Units)+";w="+itoa(seconds(a.Policy.Window)))
		limits = append(limits, name+";r="+itoa(a.Remaining)+";t="+itoa(seconds(a.ResetAfter)))
		if tightest == nil || a.Remaining < tightest.Remaining {
			tightest = a
		}
	}
	if tightest == nil {
		return
	}
	h.Set("RateLimit-Policy", strings.Join(policies, ", "))
	h.Set("RateLimit", strings.Join(limits, ", "))
	h.Set("X-RateLimit-Limit", itoa(tightest.Policy.Units))
	h.Set("X-RateLimit-Remaining", itoa(tightest.Remaining))
	h.Set("X-RateLimit-Reset", itoa(seconds(tightest.ResetAfter)))
}

// deny answers 429 with the wait of the policy that denies for longest.
func deny(w http.ResponseWriter, asks []limit.Ask) {
	p := problem{Type: quotaExceeded, Title: "Too many requests", Status: http.StatusTooManyRequests}
	for _, a := range asks {
		if !a.Allowed {
			p.Violated = append(p.Violated, a.Policy.Name)
		}
	}
	if denial := limit.Denial(asks); denial.Never {
		p.Detail = "this request costs more than " + denial.Policy.Name + " ever allows"
	} else {
		p.Detail = "try again in " + denial.RetryAfter.String()
		w.Header().Set("Retry-After", itoa(seconds(denial.RetryAfter)))
	}
	p.write(w)
}

// unavailable answers when nothing could be decided.
func unavailable(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "5")
	problem{Type: reducedCapacity, Title: "Limits cannot be checked",
		Status: http.StatusServiceUnavailable,
		Detail: "the store of the limits cannot be reached; try again in a few seconds",
	}.write(w)
}

func (p problem) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	json.NewEncoder(w).Encode(p)
}

// seconds rounds up: who waits that long is not early.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// quote makes a structured-field string (RFC 9651). Names have printable ASCII only.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
