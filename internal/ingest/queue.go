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
	"quotabudget/internal/youtube/fault"
)

// maxSilent is how many regions in a row may get no answer before the upstream is taken to be down.
// Each of them costs as many units as there were attempts.
const maxSilent = 3

// queue hands the visits of a sweep to its readers, stalest region first, and stops them all at
// once.
//
// A reader begins a visit beside others only while the upstream answers and the units left pay for
// every page that is still to be asked for. So a key that is refused, or an upstream that is
// down, costs what it costs a single reader, and short units complete charts rather than begin
// them.
//
// Regions without an answer are counted over time, not by how many fail together: a failure counts
// if nothing else has told whether the upstream answers since the last request for the region
// began, and any answer begins the count anew. The last region asked is the one that was served
// most lately: regions that always fail come first in every sweep, being the stalest, and must not
// keep the others from being visited.
type queue struct {
	stop context.Context // ended: no further page is asked for

	mu      sync.Mutex
	changed sync.Cond // a page has come, a visit or the sweep has ended
	left    []*visit
	pages   int64            // of a visit, at most
	busy    int              // visits under way that ask the upstream
	wanted  int64            // pages that they may still ask for
	fit     int64            // pages that the units left pay for; 0 while the upstream is silent
	at      time.Time        // of the decision that said so
	silent  int              // regions without an answer since the last answer
	heard   int              // how often it was told whether the upstream answers
	cause   error            // of the end: what happened in one region has ended the sweep for all
	broken  error            // the catalogue takes no more
	units   map[string]int64 // charged, by bucket

	end      context.CancelCauseFunc // ends the requests under way
	telling  sync.Mutex              // held by who calls Sweep.Watch
	panicked string                  // what a reader panicked with, and where
}

// stopped is the error of a region that was being read when another one ended the sweep.
type stopped struct{ error }

func (s stopped) Unwrap() error { return s.error }

func newQueue(ctx context.Context, order []*visit, pages int) *queue {
	q := &queue{stop: ctx, left: slices.Clone(order), pages: max(int64(pages), 1),
		units: make(map[string]int64)}
	q.changed.L = &q.mu
	return q
}

// take is the next visit; nil when there is none, or the sweep has ended.
func (q *queue) take(ctx context.Context) *visit {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.busy > 0 && q.wanted+q.pages > q.fit && q.over() == nil {
		q.changed.Wait()
	}
	if q.over() != nil || ctx.Err() != nil || len(q.left) == 0 {
		return nil
	}
	next, last := 0, len(q.left)-1
	if q.silent == maxSilent-1 && !q.left[0].Known && !q.left[last].Known {
		next = last
	}
	v := q.left[next]
	q.left = slices.Delete(q.left, next, next+1)
	if !v.Known {
		v.wants = q.pages
		q.busy++
		q.wanted += v.wants
	}
	return v
}

// ask reports why no further page is to be asked for.
func (q *queue) ask(v *visit) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	v.heard = q.heard
	return q.over()
}

// over is why the sweep has ended, nil as long as it goes on.
func (q *queue) over() error {
	if cause := cmp.Or(q.broken, q.cause); cause != nil {
		return stopped{cause}
	}
	return q.stop.Err()
}

// answered notes that the upstream has sent a page.
func (q *queue) answered(v *visit) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.changed.Broadcast()
	if v.wants > 0 {
		v.wants--
		q.wanted--
	}
	q.heardFrom(v)
}

// heardFrom notes that the upstream answers, and how many pages the units left pay for.
func (q *queue) heardFrom(v *visit) {
	q.silent = 0
	q.heard++
	d := v.tally.Last()
	if d.Units == nil || d.At.Before(q.at) {
		return
	}
	q.at, q.fit = d.At, math.MaxInt64/2
	for bucket, units := range d.Units {
		if remaining, ok := d.Remaining[bucket]; ok && !d.Observed && units > 0 {
			q.fit = min(q.fit, remaining/units)
		}
	}
}

// abort ends the sweep, requests under way included, unless err is nil or the end of ctx: the
// catalogue takes no more. It returns err.
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

// done books a visit, and ends the sweep if what happened in this region keeps every other from
// being visited.
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
	kind, upstream := fault.KindOf(err)
	switch {
	case q.cause != nil, q.broken != nil:
	case upstream && (kind == fault.Transient || kind == fault.Throttled):
		q.noAnswer(v, err)
		return
	case errors.Is(err, quota.ErrExhausted),
		upstream && (kind == fault.Exhausted || kind == fault.BadCredential):
		q.cause = err
	case err == nil, upstream, errors.Is(err, errLoop): // this region's own trouble
	case q.stop.Err() != nil, ctx.Err() != nil: // it was told to stop
	default: // the gate or the ledger: it would refuse the next request too
		q.cause = err
	}
	q.heardFrom(v)
}

func (q *queue) noAnswer(v *visit, err error) {
	if v.heard != q.heard {
		return // something has been heard since
	}
	q.heard++
	q.fit = 0
	if q.silent++; q.silent == maxSilent {
		q.cause = fmt.Errorf("no answer for %d regions in a row: %w", maxSilent, err)
	}
}

// catch keeps a panic for the caller of Execute, and stops the other readers.
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

// denied is the denial that ended the sweep, nil if none did.
func (q *queue) denied() *quota.Decision {
	if denied, ok := errors.AsType[*quota.DeniedError](q.cause); ok {
		return &denied.Decision
	}
	return nil
}

// closed reports whether the upstream ended the sweep by saying that the quota is gone.
func (q *queue) closed() bool {
	kind, ok := fault.KindOf(q.cause)
	return ok && kind == fault.Exhausted
}

// fatal is why the sweep could not go on, other than exhaustion.
func (q *queue) fatal() error {
	if q.denied() != nil || q.closed() {
		return q.broken
	}
	return errors.Join(q.broken, q.cause)
}
