// Package fault classifies errors of the YouTube Data API by what to do about them.
package fault

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	"quotabudget/internal/costs"
)

// Kind is what an error of the upstream means for the caller.
type Kind int

const (
	Permanent     Kind = iota // the request fails however often it is sent
	Transient                 // the upstream or the network failed: retry a few times
	Throttled                 // too many requests within a minute: retry after a while
	Exhausted                 // the day's quota is used up: retry after the reset
	BadCredential             // the key is wrong, missing or blocked, or the API is off
	BadRegion                 // the upstream does not serve the region: drop it
	NoChart                   // the region or category has no chart today
	BadPageToken              // the page token expired: read the chart from its start
)

var kindNames = [...]string{"permanent", "transient", "throttled", "exhausted", "bad credential",
	"bad region", "no chart", "bad page token"}

func (k Kind) String() string { return kindNames[k] }

// Fault is the content of an error response.
type Fault struct {
	Kind   Kind
	Status int // HTTP status
	// The other fields are zero if the response does not contain them.
	Reason      string    // the most specific one: quotaExceeded, API_KEY_INVALID
	Message     string    // one line of plain text, cut to 300 characters
	Metric      string    // the quota metric that is exhausted or throttled
	WindowStart time.Time // of the quota window
}

// Classify classifies a response with a status other than 2xx, by the refusals in the built-in
// price list.
func Classify(status int, body []byte) Fault {
	said := prices().Refusal(status, http.Header{}, body)
	return Fault{Kind: kindOf(said), Status: status, Reason: said.Reason, Message: said.Message,
		Metric: said.Metric, WindowStart: said.Since}
}

// prices returns the price list of this API.
var prices = sync.OnceValue(func() *costs.Table {
	t, err := costs.Shipped().Upstream("youtube")
	if err != nil {
		panic(err) // a test reads it
	}
	return t
})

// kindOf converts the price list's word into a kind.
func kindOf(said *costs.Refusal) Kind {
	word := cmp.Or(said.As, string(said.Kind))
	return Kind(max(0, slices.Index(kindNames[:], word)))
}
