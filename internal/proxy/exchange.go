package proxy

import (
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/limit"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// Outcomes of a request, in the log and the metrics.
const (
	outcomeServed    = "served"
	outcomePreflight = "preflight"
	outcomeDenied    = "denied"         // does not fit the budget now
	outcomeRefused   = "refused"        // not forwarded, because of its form or caller
	outcomeFailed    = "failed"         // no response from the upstream
	outcomeUpstream  = "upstream error" // the upstream answered with 400 or more
	outcomeBroken    = "broken off"     // the response is incomplete
)

type exchange struct {
	proxy *Proxy
	r     *http.Request
	w     *writer
	began time.Time
	path  string // as requested

	up     *Upstream // nil until route finds it
	prefix string    // name of the upstream, removed from the path
	word   string    // secret word, removed from the path before prefix

	caller   limit.TokenHolder // zero if no token is required
	ownToken bool              // the Authorization header contained a token of the proxy
	method   costs.Method      // zero until the route is known
	body     *body             // nil without a body
	incoming io.ReadCloser     // the request body as it arrives
	moved    func()            // called when bytes have moved in either direction
	length   int64             // of the request body, by Content-Length; -1 without it
	cut      bool              // answered before all of the body arrived
	slot     bool              // has one of the Limits.Requests slots
	keeps    keeper
	tally    meter.Tally
	outcome  string
	failure  error // cause of the outcome
}

func (p *Proxy) begin(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{proxy: p, r: r, began: time.Now(), outcome: outcomeServed,
		path: r.URL.EscapedPath(), incoming: r.Body, length: r.ContentLength, moved: func() {}}
	x.w = &writer{ResponseWriter: w, control: http.NewResponseController(w), x: x,
		status: http.StatusOK}
	x.w.control.SetWriteDeadline(time.Time{}) // the previous request may have set one
	x.keeps.proxy = p
	p.serving.Add(1)
	p.Metrics.inFlight.Inc()
	return x
}

// end releases the exchange's resources and logs its outcome. It passes on a panic, which aborts
// the connection of a response that broke off.
func (x *exchange) end() {
	panicked := recover()
	if panicked != nil {
		x.outcome = outcomeBroken
	} else if x.outcome == outcomeServed && x.w.status >= http.StatusBadRequest {
		x.outcome = outcomeUpstream
	}
	if x.slot {
		x.proxy.underWay.Add(-1)
	}
	x.keeps.release()
	x.w.expect()
	x.proxy.Metrics.end(x)
	x.log()
	x.proxy.serving.Add(-1)
	x.drain()
	if panicked != nil {
		panic(panicked)
	}
}

func (x *exchange) name() error {
	id, err := x.up.Table.Method(x.r)
	if first := x.firstPart(); err != nil && x.prefix == "" &&
		slices.Contains(x.proxy.Unserved, first) {
		return notServed(first)
	}
	if err != nil {
		return err
	}
	if x.method, err = x.up.Table.Lookup(id); err != nil {
		return err
	}
	for _, term := range x.method.Terms {
		if !x.caller.MayCharge(term.Bucket) {
			return notAllowed("its line in the token file does not name bucket " + term.Bucket)
		}
	}
	return nil
}

func (x *exchange) charged() map[string]int64 {
	units := x.tally.Units()
	maps.DeleteFunc(units, func(_ string, n int64) bool { return n == 0 }) // cancelled units
	return units
}

// log logs the request without its query, headers and body.
func (x *exchange) log() {
	attrs := []slog.Attr{
		slog.String("outcome", x.outcome), slog.Int("status", x.w.status),
		slog.String("verb", words.Clip(x.r.Method)),
		slog.String("path", loggable(words.Clip(x.path))),
		slog.Duration("took", time.Since(x.began).Round(time.Microsecond)),
	}
	if x.method.ID != "" {
		attrs = append(attrs, slog.String("method", x.method.ID))
	}
	charged, key := x.charged(), "units."
	if x.tally.Open() { // the rest of the response will report the usage
		key = "held."
	}
	for _, bucket := range slices.Sorted(maps.Keys(charged)) {
		attrs = append(attrs, slog.Int64(key+bucket, charged[bucket]))
	}
	if x.caller.Name != "" {
		attrs = append(attrs, slog.String("caller", x.caller.Name))
	}
	level := slog.LevelInfo
	if x.outcome != outcomeServed && x.outcome != outcomePreflight {
		level = slog.LevelWarn
	}
	if x.failure != nil {
		attrs = append(attrs, slog.String("error", loggable(x.failure.Error())))
	}
	x.proxy.Log.LogAttrs(x.r.Context(), level, "request", attrs...)
}

// loggable makes a text from outside safe to log.
func loggable(text string) string {
	if quota.LooksSecret(text) {
		return "(not shown: it holds what looks like a key)"
	}
	return text
}
