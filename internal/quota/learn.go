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
		state.Others = later.reported(l.Limit, a.n, learned.Units).Replace(state.Others)
		state.Floor = max(state.Floor, a.n-1) // nothing is decided at an earlier time from now on
	}
	b.fail(later.broken)
	if !state.equal(b.State) {
		a.write(BucketChange{State: state})
	}
	return learned, a.err()
}

// reported returns what other programs used in the window of the limit, with units more.
func (b *Bucket) reported(l Limit, n, units int64) Others {
	o := Others{Window: l.Window.String(), At: n, Units: b.used(l, n) - b.own(l.Window, n) + units}
	if l.Window.IsRestoring() {
		_, den := l.Window.Restore.Terms()
		o.Level = b.levelOf(l, n) + units*den
	}
	return o
}

// usedWhenAsked returns the units used at n, with those that have left the window since the call
// was charged.
func (b *Bucket) usedWhenAsked(l Learn, n int64) int64 {
	at, w := l.Asked(n), l.Limit.Window
	switch {
	case w.Anchored:
		return b.used(l.Limit, n)
	case w.IsRestoring():
		return b.used(l.Limit, n) + w.Restore.Restored(n-at)
	}
	used, after := b.charged(w.after(at, b.State.ResetAt), n), w.after(at, b.State.ResetAt)
	if o := b.othersOf(l.Limit); o.At > after {
		used += o.Units
	}
	return used
}

// Suspend denies every charge on the one bucket until a time, or opens it again: see
// Ledger.Suspend.
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

// Others is what other programs used in one window of a bucket, as the upstream reported it. It
// counts in that window alone, as an entry stamped At would, because a response reports one limit.
type Others struct {
	Window string `json:"window"` // as Window.String writes it
	At     int64  `json:"at"`     // Unix µs
	Units  int64  `json:"units"`
	// Level is the level of a restoring window at At, with these units: see Rate.
	Level int64 `json:"level,omitempty"`
}

// OthersIn returns the element for a window, or one without units.
func OthersIn(w Window, all []Others) (o Others) {
	if len(all) == 0 {
		return o
	}
	if i := slices.IndexFunc(all, func(o Others) bool { return o.Window == w.String() }); i >= 0 {
		o = all[i]
	}
	return o
}

// Replace returns all with o in the place of the element for the same window.
func (o Others) Replace(all []Others) []Others {
	all = slices.DeleteFunc(slices.Clone(all),
		func(old Others) bool { return old.Window == o.Window })
	return append(all, o)
}

// levelAt returns the level at n that follows from the report and the units charged since.
func (o Others) levelAt(r Rate, charged, n int64) int64 {
	const most = Never
	_, den := r.Terms()
	level := min(most, o.Level+den*min(charged, (most-min(most, o.Level))/den))
	return r.LevelAfter(level, n-o.At)
}
