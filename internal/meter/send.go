package meter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"quotabudget/internal/quota"
)

// MaxBody is the maximum size in bytes of a request body on which the price depends.
const MaxBody = 32 << 20

// price prices the call by the price list, and reads the body if the price depends on it.
func (e *exchange) price() (err error) {
	t, method := e.gate, e.call.Method
	m, err := t.Table.Lookup(method)
	if err != nil {
		return err
	}
	var body []byte
	if t.Table.NeedsBody(method) || !m.Known() {
		if body, err = e.body(); err != nil {
			return err
		}
	}
	e.quote, err = t.Table.Quote(method, e.r, body, t.learned(e.r.Context(), method))
	for _, u := range e.quote.Unlisted {
		name := t.warnUnlisted(method, u)
		e.call.Labels = e.call.Labels.With(quota.Labels{quota.LabelUnlisted: name})
	}
	if err != nil {
		return err
	}
	t.Estimates.apply(m, e.quote)
	if !m.Known() || t.Table.Learns() { // the budget prices all others
		e.call.Costs = e.quote.Held()
		e.free = len(e.call.Costs) == 0
	}
	e.call.Model = e.quote.Model()
	if e.quote.Priced != "" {
		e.call.Labels = e.call.Labels.With(quota.Labels{quota.LabelPriced: e.quote.Priced})
	}
	return nil
}

// body reads the request's body, so that it can be sent even if the caller disconnects.
func (e *exchange) body() ([]byte, error) {
	r := e.r
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	r.Body.Close()
	switch {
	case err != nil:
		return nil, fmt.Errorf("its body broke off: %w", err)
	case len(body) > MaxBody:
		return nil, fmt.Errorf("%w: more than %d bytes", ErrBodyTooLarge, MaxBody)
	}
	e.r = r.Clone(r.Context())
	e.r.Body, e.r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	e.r.TransferEncoding = nil
	return body, nil
}

// take charges a known price, or sets aside an estimate of an unknown one.
func (e *exchange) take() (err error) {
	ctx, t := e.r.Context(), e.gate
	e.part = t.partOf(e.r)
	if e.quote.Known && e.part == whole && t.Budget.InFlight(e.quote.Costs...) {
		e.quote.Known = false // hold it, so that it counts until its response ends
	}
	switch {
	case e.free:
		e.decision, e.quote.Known = quota.Decision{Allowed: true, Replayed: true}, true
		return nil
	case e.quote.Known:
		err = e.charge()
	default:
		e.decision, err = t.Budget.Hold(ctx, quota.ReserveRequest{Call: e.call, TTL: e.quote.TTL,
			Lapse: e.quote.Lapse})
		if err == nil && e.decision.Replayed {
			err = errKeyPaid
		}
		e.cancel = func(ctx context.Context) error {
			return t.Budget.GiveBack(ctx, e.decision, e.call)
		}
	}
	if err != nil {
		return err
	}
	e.reach(held)
	tallyOf(ctx).add(e.decision, +1, !e.quote.Known)
	return nil
}

// errKeyPaid refuses a second request under an idempotency key.
var errKeyPaid = fmt.Errorf("%w: one key pays for one request", quota.ErrKeyReused)

// sendKnown sends a request whose price is known. It reads the response only for reported limits.
func (e *exchange) sendKnown() (*http.Response, error) {
	e.ctx, e.stop = context.WithoutCancel(e.r.Context()), func() {}
	e.readFile()
	resp, err := e.transmit(e.r.Context())
	if err == nil {
		return e.begin(resp)
	}
	if !e.reached(sent) {
		e.takeBack()
	}
	return nil, err
}

// response is a response of the upstream, or an error.
type response struct {
	*http.Response
	err error
}

// sendHeld sends a held request, which outlives its caller once it may have left this machine.
func (e *exchange) sendHeld() (*http.Response, error) {
	caller := e.r.Context()
	e.detach(caller)
	e.readFile()
	arrived := make(chan response, 1)
	done := e.opened()
	go func() {
		defer done()
		resp, err := e.transmit(e.ctx)
		if err != nil {
			e.failed(err)
		} else {
			resp, err = e.begin(resp)
		}
		arrived <- response{resp, err}
	}()
	select {
	case a := <-arrived:
		return a.Response, a.err
	case <-caller.Done():
	}
	discard := func() {
		if a := <-arrived; a.Response != nil {
			a.Body.Close() // reads the rest of the body
		}
	}
	if !e.reached(sent) || !e.abandoned(discard) {
		e.stop()
		discard()
	}
	return nil, context.Cause(caller)
}

// detach creates the context of a call that may outlive its caller by Drain.Time.
func (e *exchange) detach(caller context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(caller))
	patience := e.gate.Drain.orDefault().Time
	unwatch := context.AfterFunc(caller, func() {
		timer := time.AfterFunc(patience, cancel)
		context.AfterFunc(ctx, func() { timer.Stop() })
	})
	e.ctx, e.stop = ctx, func() {
		unwatch()
		cancel()
	}
}

// failed releases the hold of a request that never left. The hold of a request that may have left
// lapses into a charge, unless the price list says otherwise.
func (e *exchange) failed(err error) {
	e.stop()
	switch {
	case !e.reached(sent):
		e.takeBack()
	case errors.Is(err, context.Canceled):
		e.lapses("")
	default:
		e.lapses("no answer came")
	}
}

// takeBack cancels the charge, or releases the hold, of a request that never left because no
// connection was made.
func (e *exchange) takeBack() {
	ctx, done := context.WithTimeout(context.WithoutCancel(e.ctx), settleTime)
	defer done()
	if err := e.cancel(ctx); err != nil {
		e.log().Warn("cannot cancel the charge of a request that never left", "units",
			e.decision.Units, "error", err)
		return
	}
	tallyOf(e.ctx).add(e.decision, -1, false)
}
