package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/youtube"
)

// maxSilent is the number of regions in a row without an answer after which the sweep takes the
// upstream to be down. Each of them costs a unit per attempt.
const maxSilent = 3

// queue hands out visits to the readers, stalest region first, and stops all readers at once.
//
// A reader begins a visit in parallel only while the upstream answers and the remaining units
// cover every page still to be requested. A refused key or an upstream that is down therefore
// costs no more than with a single reader, and scarce units complete charts instead of beginning
// new ones.
//
// Failures are counted over time, not by how many regions fail together: a failure counts only if
// no other request has shown, since the last request for its region began, whether the upstream
// answers. Any answer resets the count. The last region tried is the most recently served one:
// regions that always fail are the stalest and come first in every sweep, and must not keep the
// others from being visited.
type queue struct {
	stop context.Context // when it ends, readers request no further page

	mu      sync.Mutex
	changed sync.Cond // signals a new page, and the end of a visit or of the sweep
	pending []*visit
	pages   int64            // maximum pages of a visit
	busy    int              // visits in progress that call the upstream
	wanted  int64            // pages these visits may still request
	fit     int64            // pages the remaining units cover; 0 while the upstream is silent
	fitAt   time.Time        // time of the decision that fit comes from
	silent  int              // regions without an answer since the last answer
	signals int              // number of answers and failures counted so far
	cause   error            // why the sweep ended, if one region ended it for all
	broken  error            // set when the catalogue cannot store pages
	units   map[string]int64 // units charged, by bucket

	end      context.CancelCauseFunc // cancels the requests in flight
	watching sync.Mutex              // serializes calls of Sweep.Watch
	panicked string                  // a reader's panic value and stack
}

// stopped is the error of a region whose reading was cut short because the sweep ended.
type stopped struct{ error }

func (s stopped) Unwrap() error { return s.error }

// take returns the next visit, or nil if none is left or the sweep has ended.
func (q *queue) take(ctx context.Context) *visit {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.busy > 0 && q.wanted+q.pages > q.fit && q.over() == nil {
		q.changed.Wait()
	}
	if q.over() != nil || ctx.Err() != nil || len(q.pending) == 0 {
		return nil
	}
	next, last := 0, len(q.pending)-1
	if q.silent == maxSilent-1 && !q.pending[0].Known && !q.pending[last].Known {
		next = last
	}
	v := q.pending[next]
	q.pending = slices.Delete(q.pending, next, next+1)
	if !v.Known {
		v.wants = q.pages
		q.busy++
		q.wanted += v.wants
	}
	return v
}

// ask returns an error if the sweep has ended and no further page may be requested.
func (q *queue) ask(v *visit) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	v.signals = q.signals
	return q.over()
}

// over returns why the sweep ended, or nil while it runs.
func (q *queue) over() error {
	if cause := cmp.Or(q.broken, q.cause); cause != nil {
		return stopped{cause}
	}
	return q.stop.Err()
}

// answered records that the upstream has sent a page.
func (q *queue) answered(v *visit) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.changed.Broadcast()
	if v.wants > 0 {
		v.wants--
		q.wanted--
	}
	q.noteAnswer(v)
}

// noteAnswer records that the upstream answers, and how many pages the remaining units cover.
func (q *queue) noteAnswer(v *visit) {
	q.silent = 0
	q.signals++
	d := v.tally.Last()
	if d.Units == nil || d.At.Before(q.fitAt) {
		return
	}
	q.fitAt, q.fit = d.At, math.MaxInt64/2
	for bucket, units := range d.Units {
		if remaining, ok := d.Remaining[bucket]; ok && !d.Observed && units > 0 {
			q.fit = min(q.fit, remaining/units)
		}
	}
}

// abort ends the sweep and cancels its requests because of a catalogue error. It does nothing if
// err is nil or ctx has ended. It returns err.
func (q *queue) abort(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.changed.Broadcast()
	err = fmt.Errorf("%w: %w", ErrCatalogue, err)
	q.broken = cmp.Or(q.broken, err)
	q.end(err)
	return err
}

// done books a visit. It ends the sweep if the error would hit every other region too.
func (q *queue) done(ctx context.Context, v *visit) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.changed.Broadcast()
	q.busy--
	q.wanted -= v.wants
	for bucket, n := range v.tally.Units() {
		q.units[bucket] += n
	}
	err := v.err
	kind, upstream := youtube.KindOf(err)
	switch {
	case q.cause != nil, q.broken != nil:
	case upstream && (kind == youtube.Transient || kind == youtube.Throttled):
		if v.signals != q.signals {
			return // another request succeeded or failed since
		}
		q.signals++
		q.fit = 0
		if q.silent++; q.silent == maxSilent {
			q.cause = fmt.Errorf("no answer for %d regions in a row: %w", maxSilent, err)
		}
		return
	case errors.Is(err, quota.ErrExhausted),
		upstream && (kind == youtube.Exhausted || kind == youtube.BadCredential):
		q.cause = err
	case err == nil, upstream, errors.Is(err, errLoop): // a problem of this region only
	case q.stop.Err() != nil, ctx.Err() != nil: // the sweep was stopped
	default: // the gate or the ledger failed and would refuse the next request too
		q.cause = err
	}
	q.noteAnswer(v)
}

// catch records a panic for Execute, and stops the other readers.
func (q *queue) catch() {
	value := recover()
	if value == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.changed.Broadcast()
	q.panicked = fmt.Sprintf("%v\n\n%s", value, debug.Stack())
	q.cause = fmt.Errorf("panic: %v", value)
}

// denied returns the denial that ended the sweep, or nil.
func (q *queue) denied() *quota.Decision {
	if denied, ok := errors.AsType[*quota.DeniedError](q.cause); ok {
		return &denied.Decision
	}
	return nil
}

// closed reports whether the sweep ended because the upstream refused its quota.
func (q *queue) closed() bool {
	kind, ok := youtube.KindOf(q.cause)
	return ok && kind == youtube.Exhausted
}

// fatal returns the error that ended the sweep, unless that was exhaustion.
func (q *queue) fatal() error {
	if q.denied() != nil || q.closed() {
		return q.broken
	}
	return errors.Join(q.broken, q.cause)
}
