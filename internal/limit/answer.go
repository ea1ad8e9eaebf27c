package limit

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"quotabudget/internal/words"
)

// Problem is the reason why a request is refused; Write sends it as problem+json (RFC 9457).
type Problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Violated []string `json:"violated-policies,omitempty" doc:"the limits that deny"`
}

// fields sets the RateLimit fields of all policies, and X-RateLimit-* of the policy with the fewest
// units left.
func fields(h http.Header, asks []Ask, allowed bool) {
	items := make([]HeaderItem, len(asks))
	tightest := 0
	for i, a := range asks {
		items[i] = HeaderItem{Name: a.Policy.Name, Units: a.Policy.Units,
			Window: a.Policy.Window, Remaining: a.Remaining, Next: a.NextAfter}
		if !allowed && a.Allowed { // the caller does not wait for this one
			items[i].Next = -1
		}
		if a.Remaining < asks[tightest].Remaining {
			tightest = i
		}
	}
	SetHeader(h, items)
	if len(asks) > 0 {
		a := asks[tightest]
		h.Set("X-RateLimit-Limit", itoa(a.Policy.Units))
		h.Set("X-RateLimit-Remaining", itoa(a.Remaining))
		h.Set("X-RateLimit-Reset", itoa(words.Seconds(a.ResetAfter)))
	}
}

// TooMany returns the problem of the policy that denies for longest. It sets Retry-After.
func TooMany(h http.Header, asks []Ask) Problem {
	p := Problem{Type: QuotaExceeded, Title: "Too many requests",
		Status: http.StatusTooManyRequests}
	for _, a := range asks {
		if !a.Allowed {
			p.Violated = append(p.Violated, a.Policy.Name)
		}
	}
	if denial := Denial(asks); denial.Never {
		p.Detail = "this request costs more than " + denial.Policy.Name + " ever allows"
	} else {
		wait := words.Seconds(denial.RetryAfter)
		p.Detail = "try again in " + (time.Duration(wait) * time.Second).String()
		h.Set("Retry-After", itoa(wait))
	}
	return p
}

// Write sends the problem.
func (p Problem) Write(w http.ResponseWriter) { WriteProblem(w, p.Status, p) }

// WriteProblem sends a problem that has more fields than Problem.
func WriteProblem(w http.ResponseWriter, status int, problem any) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(problem)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
