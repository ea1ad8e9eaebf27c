package meter

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// maxAnswer is how many bytes of an error body are read; the rest is dropped.
const maxAnswer = 1 << 20

// errorBody reads the body of an error response and puts it back for the client without the key,
// which some errors contain, as in "Consumer 'api_key:XYZ' has been suspended".
func errorBody(resp *http.Response, key string) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	resp.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("answer %d of the upstream broke off: %w", resp.StatusCode, err)
	}
	body = []byte(withoutKey(string(body), key))
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength, resp.TransferEncoding = int64(len(body)), nil
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return body, nil
}

// refused learns from a response that refuses a call: it suspends a bucket that is exhausted until
// the upstream opens it again, and buckets that are throttled until the moment the response names.
func (t *Transport) refused(ctx context.Context, charge quota.Decision, r *costs.Refusal) {
	switch {
	case r == nil:
	case r.Kind == costs.Exhausted && r.Bucket == "" && r.Metric != "":
		// it does not concern the bucket that our price list charged
		t.Log.Warn("the upstream reports an exhausted quota that the price list lacks",
			"metric", r.Metric)
	case r.Kind == costs.Exhausted:
		t.suspend(ctx, charge, r, closes(r, charge))
	case r.Kind == costs.Throttled && !r.Until.IsZero():
		t.suspend(ctx, charge, r, t.throttles(r, charge)...)
	case r.Kind == costs.BadCredential && t.Proxied:
		t.warnOnce("bad credential", "the upstream refuses the key of the credential", "credential",
			t.Budget.Credential, "reason", r.Reason, "message", r.Message)
	}
}

// closes returns the bucket that a refusal concerns. If the response names none, that is the
// default bucket if the request was charged to it, else the first bucket charged.
func closes(r *costs.Refusal, d quota.Decision) string {
	_, byDefault := d.Units[quota.DefaultBucket]
	switch {
	case r.Bucket != "":
		return r.Bucket
	case byDefault || len(d.Units) == 0:
		return quota.DefaultBucket
	}
	return slices.Min(slices.Collect(maps.Keys(d.Units)))
}

// throttles returns the buckets that a throttle suspends: the bucket that the rule names, else the
// charged buckets that have limits, because status shows only these, or all charged buckets if none
// has limits. Money is left out: a rate does not limit it, and other calls may still spend it.
func (t *Transport) throttles(r *costs.Refusal, d quota.Decision) (buckets []string) {
	if r.Bucket != "" {
		return []string{r.Bucket}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Units)) {
		if b, _ := t.Table.Bucket(name); !b.Unit.IsMoney() || len(d.Units) == 1 {
			buckets = append(buckets, name)
		}
	}
	unlimited := func(name string) bool { return len(t.Budget.LimitsOn(name)) == 0 }
	if limited := slices.DeleteFunc(slices.Clone(buckets), unlimited); len(limited) > 0 {
		return limited
	}
	return buckets
}

// suspend closes the buckets until the time that the upstream named, else until the end of the
// window in which the request was charged. A response that arrives after that must not close the
// new window, and no response shortens an existing suspension.
func (t *Transport) suspend(ctx context.Context, charge quota.Decision, r *costs.Refusal,
	buckets ...string) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer done()
	now, err := t.Budget.Ledger.Time(ctx)
	if err != nil {
		now = time.Now()
	}
	for _, bucket := range buckets {
		until := t.reopens(charge, r, bucket, now)
		log := t.Log.With("bucket", bucket, "until", until.UTC(), "reason", r.Reason)
		if !until.After(now) {
			log.Info("ignored a late report of an exhausted bucket: its window has ended")
			continue
		}
		before, err := t.Budget.SuspendedUntil(ctx, bucket)
		if err == nil && !until.After(before) {
			continue
		}
		reason := strings.Trim(r.Reason+": "+r.Message, ": ")
		if err := t.Budget.SuspendUntil(ctx, bucket, until, reason); err != nil {
			log.Error("cannot suspend the bucket that the upstream refused", "error", err)
		} else if r.Kind == costs.Throttled {
			log.Warn("the upstream throttles: bucket suspended")
		} else {
			log.Warn("the upstream reports an exhausted bucket: suspended until its reset")
		}
	}
}

// reopens returns when the upstream opens a bucket that it refused.
func (t *Transport) reopens(charge quota.Decision, r *costs.Refusal, bucket string,
	now time.Time) time.Time {
	until := r.Until.Time(now)
	if until.IsZero() {
		at := charge.At
		if at.IsZero() { // the charge of another request counted
			at = now
		}
		_, until = t.window(bucket, r.Window).Bounds(at)
	}
	farthest := t.farthest(bucket, now)
	if !until.After(farthest) {
		return until
	}
	t.Log.Warn("the upstream names a reset that is farther away than any of its windows: it "+
		"is asked again before", "bucket", bucket, "reset", until.UTC())
	return farthest
}

// window is the calendar window by which the upstream counts a bucket: the list's day, or the
// longest that is configured where the list has no limits, since those depend on the account.
func (t *Transport) window(bucket string, configured bool) quota.Window {
	reset := t.Table.Reset(bucket)
	if b, ok := t.Table.Bucket(bucket); !ok || !configured || len(b.Limits) > 0 {
		return reset
	}
	configuredWindow := false
	for _, l := range t.Budget.LimitsOn(bucket) {
		w := l.Window
		if w.IsCalendar() && (!configuredWindow || w.Longest() > reset.Longest()) {
			reset, configuredWindow = w, true
		}
	}
	return reset
}

// farthest returns the latest time until which a bucket may be suspended, whatever the upstream
// reports: two of its longest windows, at least two days.
func (t *Transport) farthest(bucket string, now time.Time) time.Time {
	longest := t.Table.Reset(bucket).Longest()
	for _, l := range t.Budget.LimitsOn(bucket) {
		longest = max(longest, l.Window.Longest())
	}
	return now.Add(2 * longest)
}

// learn records in the ledger what the response reports about limits. after is the decision on the
// booked units. A figure above our own count is ignored.
func (t *Transport) learn(ctx context.Context, charge quota.Decision, after quota.Decision,
	lessons []costs.Lesson) {
	for _, lesson := range lessons {
		limits := slices.DeleteFunc(t.Budget.LimitsOn(lesson.Bucket),
			func(l quota.Limit) bool { return l.Window.Concurrent }) // lessons are about windows
		for _, limit := range limits {
			if about(lesson, limit.Window, len(limits) == 1) {
				t.learnOf(ctx, charge, after, lesson, limit, len(limits) == 1)
			}
		}
	}
}

// about reports whether the lesson is about a limit with the window w. A list that names no window
// means the bucket's only limit, or the limit whose state the upstream reports.
func about(l costs.Lesson, w quota.Window, only bool) bool {
	switch {
	case l.Window == (quota.Window{}):
		return only || w.Anchored || w.IsRestoring()
	case w.IsRestoring():
		return !l.Window.IsCalendar()
	case l.Window.String() == w.String():
		return true
	}
	length := lengthOf(w)
	return length > 0 && length == lengthOf(l.Window)
}

// lengthOf returns the length of a sliding or calendar window; 0 if the length depends on the zone.
func lengthOf(w quota.Window) time.Duration {
	switch w.Calendar {
	case "":
		return w.Length
	case "minute":
		return time.Minute
	case "hour":
		return time.Hour
	}
	return 0
}

func (t *Transport) learnOf(ctx context.Context, charge quota.Decision, after quota.Decision,
	lesson costs.Lesson, limit quota.Limit, only bool) {
	now := time.Now()
	if !after.At.IsZero() { // read after the response, by the ledger's clock
		now = after.At
	}
	reset := lesson.Reset.Time(now)
	if reset.After(t.farthest(lesson.Bucket, now)) { // no window is that long
		if limit.Window.Anchored {
			return
		}
		reset = time.Time{}
	}
	before, _ := t.resets.Load(limit.Name())
	last, _ := before.(time.Time)
	remaining := t.remaining(lesson, limit)
	left, counted := after.Remaining[lesson.Bucket]
	news := limit.Window.Anchored && reset.Sub(last).Abs() > time.Second
	if remaining < 0 && !news || only && counted && !news && remaining >= left+limit.Headroom {
		return
	}
	learned, err := t.Budget.Learn(ctx, quota.Learn{Limit: limit, Remaining: remaining,
		Reset: reset, AskedAt: charge.At})
	if err != nil {
		t.Log.Warn("cannot record the units that the upstream has left", "limit", limit.Name(),
			"error", err)
		return
	}
	t.resets.Store(limit.Name(), reset)
	if learned.Units > 0 {
		t.Log.Info("the upstream has fewer units left than the ledger", "limit",
			limit.Name(), "left", lesson.Remaining, "counted", learned.Thought, "by", lesson.Why)
	}
}

// remaining returns the units that a response reports as left of the limit in force, or -1 if it
// reports none. If the account's limit is lower than ours, its remaining units say nothing of ours,
// unless none are left.
func (t *Transport) remaining(lesson costs.Lesson, limit quota.Limit) int64 {
	lower := limit.Units - lesson.Limit
	if lesson.Limit <= 0 || lower <= 0 {
		return lesson.Remaining
	}
	b, _ := t.Table.Bucket(limit.Bucket)
	t.warnOnce(fmt.Sprintf("lower %s %d", limit.Name(), lesson.Limit),
		fmt.Sprintf("the account allows %s in %s, the limit in force is %s: lower it in quota.yaml",
			b.Unit.Text(lesson.Limit), limit.Window.Text(), b.Unit.Text(limit.Units)),
		"credential", t.Budget.Credential, "bucket", limit.Bucket)
	if lesson.Remaining <= 0 {
		return lesson.Remaining
	}
	return min(quota.MaxUnits, lesson.Remaining+lower)
}
