package meter

import (
	"context"
	"net/http"
	"sync"

	"quotabudget/internal/costs"
)

// pendings holds the calls of this process whose usage a later response reports, by its id. If the
// process ends, their holds lapse.
type pendings struct {
	mu   sync.Mutex
	byID map[string]*exchange
}

// maxPending bounds the pending calls. Beyond it, all are left to lapse.
const maxPending = 10_000

// keep adds a call that awaits its usage, without its body.
func (p *pendings) keep(id string, e *exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID == nil || len(p.byID) >= maxPending {
		p.byID = map[string]*exchange{}
	}
	p.byID[id] = &exchange{gate: e.gate, r: &http.Request{Header: e.r.Header}, call: e.call,
		quote: e.quote, ctx: context.WithoutCancel(e.ctx), decision: e.decision}
}

// of returns the call with an id, or nil.
func (p *pendings) of(id string) *exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byID[id]
}

// take removes the call; it returns false if another response has settled it.
func (p *pendings) take(id string, e *exchange) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID[id] != e {
		return false
	}
	delete(p.byID, id)
	return true
}

// awaited observes a response that may report the usage of a pending call.
type awaited struct {
	call *exchange
	seen *costs.Observation
}

// await starts to observe a response for its pending call.
func (e *exchange) await(resp *http.Response) {
	if call := e.gate.pendings.of(e.quote.Reports); call != nil && e.quote.Reports != "" {
		e.awaited = &awaited{call, call.quote.Observe(resp.StatusCode, resp.Header)}
	}
}

// observe reads the next bytes of the response.
func (e *exchange) observe(p []byte) {
	e.seen.Write(p)
	if e.awaited != nil {
		e.awaited.seen.Write(p)
	}
}

// report settles the pending call if the response reports its usage.
func (e *exchange) report() {
	if e.awaited == nil {
		return
	}
	call, out := e.awaited.call, e.awaited.seen.Close()
	if out.Pending != "" || out.Refusal != nil || len(out.Missing) > 0 ||
		!e.gate.pendings.take(e.quote.Reports, call) {
		return
	}
	call.settle(out.Costs, nil)
	call.remember(out.Costs)
}
