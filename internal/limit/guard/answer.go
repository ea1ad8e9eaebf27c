package guard

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/limit"
)

// Problem is why a request is not answered; Write sends it as problem+json (RFC 9457).
type Problem struct {
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

// told is what the fields always say of a policy, as structured-field items (RFC 9651).
type told struct{ name, policy, units string }

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// tell prepares the fields of a policy. Names have printable ASCII only.
func (g *Guard) tell(p *limit.Policy) {
	name := `"` + escape.Replace(p.Name) + `"`
	units := itoa(p.Units)
	g.told[p] = told{name, name + ";q=" + units + ";w=" + itoa(seconds(p.Window)), units}
}

// fieldNames are in the form that http.Header uses.
var fieldNames = [...]string{"Ratelimit-Policy", "Ratelimit", "X-Ratelimit-Limit",
	"X-Ratelimit-Remaining", "X-Ratelimit-Reset"}

// fields sets RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers for each
// policy, and X-RateLimit-* for the one with the least left.
func (g *Guard) fields(h http.Header, asks []limit.Ask) {
	if len(asks) == 0 {
		return
	}
	policies, limits := make([]byte, 0, 256), make([]byte, 0, 256) // on the stack
	var tightest, remaining, reset, end int                        // an ask, and where limits has its numbers
	for i := range asks {
		a, told := &asks[i], g.told[asks[i].Policy]
		if i > 0 {
			policies, limits = append(policies, ", "...), append(limits, ", "...)
		}
		policies = append(policies, told.policy...)
		limits = append(append(limits, told.name...), ";r="...)
		r := len(limits)
		limits = append(strconv.AppendInt(limits, a.Remaining, 10), ";t="...)
		t := len(limits)
		limits = strconv.AppendInt(limits, seconds(a.ResetAfter), 10)
		if i == 0 || a.Remaining < asks[tightest].Remaining {
			tightest, remaining, reset, end = i, r, t, len(limits)
		}
	}
	text := string(limits)
	values := []string{string(policies), text, g.told[asks[tightest].Policy].units,
		text[remaining : reset-len(";t=")], text[reset:end]}
	for i, name := range fieldNames {
		h[name] = values[i : i+1 : i+1]
	}
}

// TooMany is the denial by the policy that denies for longest. It sets Retry-After.
func TooMany(h http.Header, asks []limit.Ask) Problem {
	p := Problem{Type: quotaExceeded, Title: "Too many requests",
		Status: http.StatusTooManyRequests}
	for _, a := range asks {
		if !a.Allowed {
			p.Violated = append(p.Violated, a.Policy.Name)
		}
	}
	if denial := limit.Denial(asks); denial.Never {
		p.Detail = "this request costs more than " + denial.Policy.Name + " ever allows"
	} else {
		wait := seconds(denial.RetryAfter)
		p.Detail = "try again in " + (time.Duration(wait) * time.Second).String()
		h.Set("Retry-After", itoa(wait))
	}
	return p
}

// unavailable is the answer when nothing could be decided. It sets Retry-After.
func unavailable(h http.Header) Problem {
	h.Set("Retry-After", "5")
	return Problem{Type: reducedCapacity, Title: "Limits cannot be checked",
		Status: http.StatusServiceUnavailable,
		Detail: "the store of the limits cannot be reached; try again in a few seconds",
	}
}

// Write answers with the problem.
func (p Problem) Write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	json.NewEncoder(w).Encode(p)
}

// seconds rounds up, so that a caller who waits that long is not early.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
