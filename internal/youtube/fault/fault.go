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

// Kind is what an error of the upstream means for whoever asked.
type Kind int

const (
	Permanent     Kind = iota // this request will fail however often it is sent
	Transient                 // the upstream or the network failed: retry a few times
	Throttled                 // too many requests within a minute: retry after a while
	Exhausted                 // the day's quota is gone: retry after the reset, not before
	BadCredential             // the key is wrong, missing or blocked, or the API is off
	BadRegion                 // the upstream knows no such region: drop it
	NoChart                   // the region or the category has no chart today
	BadPageToken              // the page is gone: read the chart from its beginning
)

var kindNames = [...]string{"permanent", "transient", "throttled", "exhausted", "bad credential",
	"bad region", "no chart", "bad page token"}

func (k Kind) String() string { return kindNames[k] }

// Fault is what an answer that is no success says.
type Fault struct {
	Kind   Kind
	Status int // of HTTP
	// The rest is zero where the answer does not say.
	Reason      string    // the most specific one: quotaExceeded, API_KEY_INVALID
	Message     string    // as plain text in one line, cut to 300 characters
	Metric      string    // the quota metric that is exhausted or throttled
	WindowStart time.Time // of the quota window
}

// Classify says what an answer with this status, not a 2xx, and this body means, by the refusals of
// the price list that ships.
func Classify(status int, body []byte) Fault {
	said := prices().Refusal(status, http.Header{}, body)
	return Fault{Kind: kindOf(said), Status: status, Reason: said.Reason, Message: said.Message,
		Metric: said.Metric, WindowStart: said.Since}
}

// prices is the list of this API.
var prices = sync.OnceValue(func() *costs.Table {
	t, err := costs.Shipped().Upstream("youtube")
	if err != nil {
		panic(err) // a test reads it
	}
	return t
})

// kindOf is the kind of the list's words.
func kindOf(said *costs.Refusal) Kind {
	word := cmp.Or(said.As, string(said.Kind))
	return Kind(max(0, slices.Index(kindNames[:], word)))
}
