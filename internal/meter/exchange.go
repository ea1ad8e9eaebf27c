package meter

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// phase is the progress of a call. It only increases.
type phase int32

const (
	priced   phase = iota // the price list has priced the call
	held                  // the units are charged or set aside
	sent                  // some of the request may have left this machine
	answered              // the headers of the response have arrived
	settled               // the response has ended and the usage is decided
)

// exchange is a call to the upstream: one request and its response.
//
// A call of unknown price is held until its response reports the usage. The upstream also bills a
// call whose caller has given up, so the request outlives its caller, and its response is read
// within the limits of Drain. If that is not enough, the hold lapses into a charge of the call's
// maximum.
//
// send.go has the phases before the request leaves, settle.go the phases after the response
// arrives.
type exchange struct {
	gate  *Transport
	r     *http.Request // the caller's
	call  quota.Call
	part  part // in a resumable upload
	key   string
	quote costs.Quote
	free  bool         // the call takes nothing
	phase atomic.Int32 // a phase

	decision    quota.Decision              // of the charge or the hold
	cancel      func(context.Context) error // cancels the charge, or releases the hold
	ctx         context.Context             // outlives the caller's context
	stop        context.CancelFunc
	observation *costs.Observation
	early       []costs.Lesson   // lessons already learned from the headers
	awaited     *awaited         // the noted call that the response may settle; nil for none
	lines       chan costs.Lines // receives the lines of the file in the request; nil for none
	open        atomic.Int32     // goroutines that work on the call
}

func (e *exchange) reach(p phase)        { e.phase.Store(int32(p)) }
func (e *exchange) reached(p phase) bool { return phase(e.phase.Load()) >= p }

// Drain limits how much of a response is read after its caller has disconnected. Zero fields have
// these defaults.
type Drain struct {
	Time  time.Duration // 2 min
	Bytes int64         // unpacked; 64 MiB
	Calls int           // at once; 256
}

func (d Drain) orDefault() Drain {
	return Drain{Time: cmp.Or(d.Time, 2*time.Minute), Bytes: cmp.Or(d.Bytes, 64<<20),
		Calls: cmp.Or(d.Calls, 256)}
}

// opened counts the call as open until the returned function is called. A call counts once, even if
// several goroutines work on it.
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

// abandoned runs read for a caller that has disconnected, unless Drain.Calls others are running. It
// reports whether it ran read.
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

// log returns a logger with the call's method and reservation.
func (e *exchange) log() *slog.Logger {
	return e.gate.Log.With("method", e.call.Method, "reservation",
		cmp.Or(e.decision.Reservation, e.call.Reservation))
}

// Open returns the number of calls whose usage is not booked yet: their requests are under way,
// their responses are read to the end, or the ledger has not answered.
func (t *Transport) Open() int { return int(t.open.Load()) }
