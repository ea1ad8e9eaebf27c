package meter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// exchange is a request that the price list quotes, and its answer.
//
// What is held for a call of an unknown price stays so until the answer says what it took: the
// upstream bills a call that its caller has given up, too. So the request is not ended with its
// caller. Its answer is read on, within the bounds of Drain. Only if that is not enough, the hold
// lapses into a charge of the most that the call may take.
type exchange struct {
	gate  *Transport
	r     *http.Request // the caller's
	call  quota.Call
	quote costs.Quote
	key   string
	ctx   context.Context // does not end with the caller's
	stop  context.CancelFunc

	asked   asked
	cancel  func(context.Context) error // the charge of a call whose price is known
	seen    *costs.Observation
	awaited *awaited       // a pending call that the response may be about; or nil
	early   []costs.Lesson // learned from the headers already
	tried   bool           // a settlement was sent
	doubt   bool           // the settlement may have been booked
	lost    bool           // the ledger has lost the hold
	open    atomic.Int32   // goroutines that work on the call
}

// Drain is how much of an answer is read when its caller has gone. Zero is the default.
type Drain struct {
	Time  time.Duration // 2 min
	Bytes int64         // unpacked; 64 MiB
	Calls int           // at once; 256
}

func (d Drain) orDefault() Drain {
	if d.Time == 0 {
		d.Time = 2 * time.Minute
	}
	if d.Bytes == 0 {
		d.Bytes = 64 << 20
	}
	if d.Calls == 0 {
		d.Calls = 256
	}
	return d
}

// opened counts the call as open until the returned function is called. A call that several
// goroutines work on counts once.
func (e *exchange) opened() (done func()) {
	if e.open.Add(1) == 1 {
		e.gate.open.Add(1)
	}
	return func() {
		if e.open.Add(-1) == 0 {
			e.gate.open.Add(-1)
		}
	}
}

// abandoned runs read for a caller that has gone, if fewer others are running than Drain allows. It
// reports whether there was room.
func (e *exchange) abandoned(read func()) bool {
	t := e.gate
	if int(t.reading.Add(1)) > t.Drain.orDefault().Calls {
		t.reading.Add(-1)
		return false
	}
	done := e.opened()
	go func() {
		defer done()
		defer t.reading.Add(-1)
		read()
	}()
	return true
}

// MaxBody is how many bytes the body of a request may have whose price depends on it.
const MaxBody = 32 << 20

// exchange prices the request, charges it or sets aside what it may take, and sends it once.
func (t *Transport) exchange(r *http.Request, call quota.Call, key string) (*http.Response, error) {
	e := &exchange{gate: t, r: r, call: call, key: key}
	err := e.price()
	if err == nil {
		err = e.take()
	}
	if err != nil {
		return nil, closing(r, fmt.Errorf("%s %w: %w", call.Method, quota.ErrNotSent, err))
	}
	tallyOf(r.Context()).add(e.asked.d, +1)
	if e.quote.Known {
		return e.sendKnown()
	}
	return e.sendHeld()
}

// price reads the body if need be, and asks what the call takes.
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
		name := t.tellUnlisted(method, u)
		e.call.Labels = e.call.Labels.With(quota.Labels{quota.LabelUnlisted: name})
	}
	if e.quote.AsJSON {
		e.r.Header.Set("Content-Type", "application/json")
	}
	if err == nil {
		t.Estimates.apply(m, e.quote)
		e.call.Costs = e.quote.Held()
	}
	if err == nil && e.quote.Priced != "" {
		e.call.Labels = e.call.Labels.With(quota.Labels{quota.LabelPriced: e.quote.Priced})
	}
	return err
}

// body reads the request's body, which is sent from memory then, whatever becomes of the caller.
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

// take charges what the call takes, or sets aside what it may take.
func (e *exchange) take() (err error) {
	ctx, budget := e.r.Context(), e.gate.Budget
	switch {
	case len(e.call.Costs) == 0: // it takes nothing
		e.asked.d, e.quote.Known = quota.Decision{Allowed: true, Replayed: true}, true
		e.cancel = func(context.Context) error { return nil }
		return nil
	case e.quote.Known:
		e.asked.d, e.cancel, err = budget.Spend(ctx, e.call)
	default:
		e.asked.d, err = budget.Hold(ctx, quota.ReserveRequest{Call: e.call, TTL: e.quote.TTL,
			Lapse: e.quote.Lapse})
		if err == nil {
			tallyOf(ctx).hold()
		}
	}
	if err == nil && e.asked.d.Replayed {
		err = fmt.Errorf("%w: one key pays for one request", quota.ErrKeyReused)
	}
	return err
}

// sendKnown sends a request whose price is known: there is only something to learn from its answer.
func (e *exchange) sendKnown() (*http.Response, error) {
	var left atomic.Bool
	e.ctx, e.stop = context.WithoutCancel(e.r.Context()), func() {}
	resp, err := e.gate.send(e.r, e.key, &left)
	if err != nil && !left.Load() {
		e.gate.takeBack(e.ctx, e.asked.d, e.cancel)
	}
	if err != nil {
		return nil, err
	}
	return e.begin(resp)
}

// sendHeld sends a request that goes on without its caller once it can have left this machine.
func (e *exchange) sendHeld() (*http.Response, error) {
	caller := e.r.Context()
	ctx, cancel := context.WithCancel(context.WithoutCancel(caller))
	bound := e.gate.Drain.orDefault()
	unwatch := context.AfterFunc(caller, func() {
		timer := time.AfterFunc(bound.Time, cancel)
		context.AfterFunc(ctx, func() { timer.Stop() })
	})
	e.ctx, e.stop = ctx, func() {
		unwatch()
		cancel()
	}
	var left atomic.Bool
	type result struct {
		resp *http.Response
		err  error
	}
	answered := make(chan result, 1)
	done := e.opened()
	go func() {
		defer done()
		resp, err := e.gate.send(e.r.WithContext(e.ctx), e.key, &left)
		if err != nil {
			e.failed(left.Load(), err)
		} else {
			resp, err = e.begin(resp)
		}
		answered <- result{resp, err}
	}()
	select {
	case a := <-answered:
		return a.resp, a.err
	case <-caller.Done():
	}
	if !left.Load() {
		e.stop()
		<-answered
		return nil, context.Cause(caller)
	}
	if !e.abandoned(func() {
		if a := <-answered; a.resp != nil {
			a.resp.Body.Close() // which reads on
		}
	}) {
		e.stop()
		if a := <-answered; a.resp != nil {
			a.resp.Body.Close()
		}
	}
	return nil, context.Cause(caller)
}

// failed gives back what was held for a request that never left. What may have left stays held, and
// lapses into a charge unless the list says otherwise.
func (e *exchange) failed(left bool, err error) {
	e.stop()
	if left {
		why := ""
		if !errors.Is(err, context.Canceled) {
			why = "no answer came"
		}
		e.lapses(why)
		return
	}
	if e.asked.d.Unmetered && e.asked.d.Entry == "" {
		return
	}
	e.book(func(ctx context.Context) error {
		err := e.gate.Budget.GiveBack(ctx, e.asked.d, e.call)
		if err == nil {
			tallyOf(e.ctx).add(e.asked.d, -1)
		}
		return err
	})
}

// begin takes the answer: its body is read by the caller, and observed as it passes.
func (e *exchange) begin(resp *http.Response) (*http.Response, error) {
	e.asked.answered = time.Now()
	resp.Request = e.r
	e.seen = e.quote.Observe(resp.StatusCode, resp.Header)
	e.await(resp)
	e.learnEarly(resp.StatusCode)
	if resp.StatusCode >= 400 && e.r.Method != http.MethodHead {
		body, err := errorBody(resp, e.key)
		e.observe(body)
		e.end(complete)
		if err != nil {
			return nil, err
		}
		return resp, nil
	}
	if e.r.Method == http.MethodHead || resp.Body == http.NoBody {
		e.end(complete)
		return resp, nil
	}
	resp.Body = &answer{body: resp.Body, exchange: e}
	return resp, nil
}
