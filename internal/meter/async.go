package meter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// Some calls, such as batches, end after their response. The host's journal keeps a note of such a
// call until the response to another request, from a client or from Watch, reports its end. The
// note is named after the path of that request. The process that replaces the note by a line of
// what the call used settles the call, under the ID in the note. Without a settlement, the hold
// lapses.

// ongoing is a note of a call that has not ended yet.
type ongoing struct {
	Booking quota.Booking // the hold to settle
	Quote   costs.Saved
	Results bool // the call has ended; its results are still to be read line by line
}

func (t *Transport) writeNote(ctx context.Context, note quota.Note, value any) error {
	if t.Budget.Journal == nil {
		return quota.ErrNoJournal
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	note.Text = string(text)
	return t.Budget.Journal.Note(ctx, note)
}

func (t *Transport) readNote(ctx context.Context, name string, value any) error {
	if t.Budget.Journal == nil {
		return quota.ErrNoNote
	}
	note, err := t.Budget.Journal.Noted(ctx, name)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(note.Text), value)
}

// note writes a note of a call whose end a request for the path reports, and extends its hold.
func (e *exchange) note(path string) {
	t, now := e.gate, time.Now()
	lapse, _ := e.quote.Pending()
	ctx, done := context.WithTimeout(context.WithoutCancel(e.ctx), settleTime)
	defer done()
	err := t.writeNote(ctx, quota.Note{Name: path, Due: now,
		Until: now.Add(2 * lapse)}, // a settlement is still booked after the lapse
		ongoing{Booking: t.Budget.NewBooking(e.decision, e.call, e.quote.Lapse),
			Quote: e.quote.Save()})
	if err != nil {
		e.log().Error("cannot note a call that goes on: its maximum is booked when "+
			"its hold lapses", "poll", path, "error", err)
	}
	if e.decision.Reservation == "" || e.decision.Unmetered {
		return
	}
	if _, err = t.Budget.Extend(ctx, e.decision.Reservation, lapse); err != nil {
		e.log().Warn("cannot extend the hold of a call that goes on", "error", err)
	}
}

// readFirst reads a response before the caller does, so that its note is written even if the
// process is killed right afterwards. It leaves a response that is too long to the caller.
func (e *exchange) readFirst(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxFirst))
	if err == nil && len(body) == maxFirst {
		resp.Body = &answer{exchange: e, body: struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}}
		return nil
	}
	resp.Body.Close()
	e.observe(body)
	if err != nil {
		e.end(broken)
		return fmt.Errorf("the answer of the upstream broke off: %w", err)
	}
	e.noteFile(body)
	e.end(complete)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

const maxFirst = 8 << 20 // bytes

// awaited observes a response that may report the end of a call in the journal.
type awaited struct {
	call        ongoing
	name        string // name of the note
	observation *costs.Observation
}

// await starts to observe a response that may report the end of a noted call.
func (e *exchange) await(resp *http.Response) {
	t := e.gate
	if !t.Table.Async() || t.Budget.Journal == nil || e.r.Method != http.MethodGet ||
		resp.StatusCode != http.StatusOK {
		return
	}
	a := awaited{name: strings.TrimSuffix(e.r.URL.Path, "/")}
	err := t.readNote(e.ctx, a.name, &a.call)
	var quote costs.Quote
	if err == nil {
		quote, err = t.Table.Resume(a.call.Quote)
	}
	switch {
	case errors.Is(err, quota.ErrNoNote):
		return
	case err != nil:
		t.Log.Warn("cannot read the note of a call that goes on", "poll", a.name, "error", err)
		return
	case a.call.Results:
		a.observation = quote.ObserveLines(resp.Header)
	default:
		a.observation = quote.Observe(resp.StatusCode, resp.Header)
	}
	e.awaited = &a
}

// observe reads the next bytes of the response.
func (e *exchange) observe(p []byte) {
	e.observation.Write(p)
	if e.awaited != nil {
		e.awaited.observation.Write(p)
	}
}

// report settles the noted call if the complete response reports its end. If the response lacks the
// usage, Poll reads the results next.
func (e *exchange) report() {
	if e.awaited == nil {
		return
	}
	a, t := e.awaited, e.gate
	out := a.observation.Close()
	if !out.Done {
		return
	}
	line := a.call.Booking
	line.Call.Costs = out.Costs
	var next *quota.Note
	if len(out.Missing) > 0 && out.Results != "" && !a.call.Results {
		a.call.Results = true
		text, err := json.Marshal(a.call)
		if err == nil {
			now := time.Now()
			next = &quota.Note{Name: out.Results, Text: string(text), Due: now,
				Until: now.Add(resultsTime)}
		}
	} else {
		t.warnMissing(line.Call.Method, out.Missing)
	}
	err := t.Budget.Journal.Resolve(e.ctx, a.name, &line, next)
	switch {
	case err == nil && next == nil:
		budget := *t.Budget
		budget.Labels = nil // the line has its own
		e.book(func(ctx context.Context) error {
			_, err := budget.Book(ctx, line)
			return err
		})
	case err != nil && !errors.Is(err, quota.ErrNoNote):
		t.Log.Warn("cannot settle a call that has ended, retrying later", "poll", a.name,
			"error", err)
	}
}

const (
	resultsTime = 48 * time.Hour   // for reading the results of a call
	pollTime    = 10 * time.Minute // for one response
	lookAfter   = 5 * time.Second
)

// Watch polls the upstream for the state of noted calls until ctx ends. Each request is charged
// like any other. Only one of the processes with the same journal polls a call.
func (t *Transport) Watch(ctx context.Context) {
	if !t.Table.Async() || t.Budget.Journal == nil {
		return
	}
	for t.Poll(ctx, time.Now()); quota.Pause(ctx, lookAfter); {
		t.Poll(ctx, time.Now())
	}
}

// Poll requests the state of each due noted call once.
func (t *Transport) Poll(ctx context.Context, now time.Time) {
	for ctx.Err() == nil {
		note, err := t.Budget.Journal.DueNote(ctx, now)
		if err == nil {
			err = t.ask(ctx, note)
		}
		switch {
		case errors.Is(err, quota.ErrNoNote):
			return
		case err != nil && ctx.Err() == nil:
			t.Log.Info("cannot ask for the state of a call, retrying later", "poll", note.Name,
				"error", err)
			if note.Name == "" {
				return
			}
		}
	}
}

// ask requests the state of a call. Its response is observed like any other.
func (t *Transport) ask(ctx context.Context, note quota.Note) error {
	ctx, done := context.WithTimeout(ctx, pollTime)
	defer done()
	var call ongoing
	if err := json.Unmarshal([]byte(note.Text), &call); err != nil {
		return err
	}
	quote, err := t.Table.Resume(call.Quote)
	if err != nil {
		return err
	}
	to := url.URL{Scheme: t.Endpoint.Scheme, Host: t.Endpoint.Host, Path: note.Name}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return err
	}
	_, headers := quote.Pending()
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	resp, err := t.RoundTrip(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}
