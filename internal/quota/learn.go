package quota

import "slices"

// Learn records what other programs used in one window according to the upstream: see
// Ledger.Learn.
func (a *Account) Learn(l Learn) (learned Learned, err error) {
	if err := a.Lapse(); err != nil {
		return learned, err
	}
	b, w := a.Buckets[0], l.Limit.Window
	later := *b
	state := &later.State
	state.ResetAt = w.NextReset(state.ResetAt, l.ResetMicros(), a.n)
	_, atMost := b.held(a.n)
	used := later.usedWhenAsked(l, a.n) + atMost
	learned = Learned{At: StampTime(a.n), Thought: max(0, l.Limit.Units-used)}
	if w.Anchored && state.ResetAt != 0 {
		learned.Reset = StampTime(state.ResetAt)
	}
	if !l.Stale(state.ResetAt, a.n) && l.Remaining >= 0 && l.Remaining < learned.Thought {
		learned.Units = learned.Thought - l.Remaining
		// Other programs used what the ledger cannot explain, on top of their earlier usage.
		o := Others{Window: w.String(), At: a.n,
			Units: later.used(l.Limit, a.n) - later.own(w, a.n) + learned.Units}
		if w.IsRestoring() {
			o.Level = w.Restore.plus(later.levelOf(l.Limit, a.n), learned.Units)
		}
		state.Others = append(slices.DeleteFunc(slices.Clone(state.Others),
			func(old Others) bool { return old.Window == o.Window }), o)
		state.Floor = max(state.Floor, a.n-1) // nothing is decided at an earlier time from now on
	}
	b.fail(later.broken)
	if !state.equal(b.State) {
		a.write(BucketChange{State: state})
	}
	return learned, a.err()
}

// usedWhenAsked returns the units used at n, plus those that have left the window since the call
// was charged.
func (b *Bucket) usedWhenAsked(l Learn, n int64) int64 {
	at, w := l.Asked(n), l.Limit.Window
	switch {
	case w.Anchored:
		return b.used(l.Limit, n)
	case w.IsRestoring():
		return b.used(l.Limit, n) + w.Restore.Restored(n-at)
	}
	after := w.after(at, b.State.ResetAt)
	used := b.charged(after, n)
	if o := b.othersOf(l.Limit); o.At > after {
		used += o.Units
	}
	return used
}

// Suspend denies every charge on the bucket until a time, or reopens it: see Ledger.Suspend.
func (a *Account) Suspend(s Suspension) error {
	state := a.Buckets[0].State
	state.SuspendedUntil, state.SuspendedSince, state.SuspendedBy, state.Reason = 0, 0, "", ""
	if !s.Until.IsZero() {
		state.SuspendedUntil, state.SuspendedSince = s.Until.UnixMicro(), a.Now
		state.SuspendedBy, state.Reason = s.By, s.Reason
	}
	if !state.equal(a.Buckets[0].State) {
		a.write(BucketChange{State: &state})
	}
	return nil
}

// Others is what other programs used in one window of a bucket, according to the upstream. It
// counts like an entry stamped At, but in that window alone, because a response reports one limit.
type Others struct {
	Window string `json:"window"` // as Window.String writes it
	At     int64  `json:"at"`     // Unix µs
	Units  int64  `json:"units"`
	// Level is the level of a restoring window at At, with these units: see Rate.
	Level int64 `json:"level,omitempty"`
}
