package quota

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// The rule decides on the data a store has read, and returns what the store must write. It does no
// I/O. Times are Unix microseconds of the store's clock.

// LogEntry is one entry of a stored log.
type LogEntry struct {
	At     int64 // stamp; strictly rising within a log
	ID     string
	Units  int64
	Total  int64  // running total of the bucket after this entry
	Labels string // as Labels.Encode writes them
}

// Log is the log of one bucket as it is stored, at one moment.
type Log interface {
	// Newest returns the newest entry, and false for an empty log.
	Newest() (LogEntry, bool, error)
	// TotalAt returns the running total just before start: that of the newest entry stamped
	// earlier, or of the time before the log's first entry.
	TotalAt(start int64) (int64, error)
	// Reached returns the stamp of the first entry whose total is at least total.
	Reached(total int64) (int64, error)
	// Since returns the first entries stamped after a time, oldest first.
	Since(after int64, limit int) ([]LogEntry, error)
}

// Hold is what one reservation sets aside in one bucket.
type Hold struct {
	ID       string // of the reservation, the same in all its buckets
	Units    int64  // as reserved
	Most     int64  // the maximum that the call may use; 0 if Units is exact
	Drawn    int64  // charged of Units since
	Created  int64
	Expires  int64
	Lapse    Lapse  // what happens when it expires
	Labels   string // for the entry that it becomes; as Labels.Encode writes them
	Manual   bool
	Note     string
	LapsedAt int64 // stamp of the entry that it has become; 0 while it is open
}

// Left returns the units still set aside.
func (h Hold) Left() int64 { return h.Units - h.Drawn }

// AtMost returns the maximum units that the hold may still become.
func (h Hold) AtMost() int64 { return max(h.Left(), h.Most-h.Drawn) }

// charges reports whether the hold becomes an entry when it expires.
func (h Hold) charges() bool { return h.Lapse == LapseCharge && h.Left() > 0 }

// State is the state of a bucket apart from its entries and holds.
type State struct {
	SuspendedUntil int64  `json:",omitzero"` // 0 when the bucket is open
	SuspendedSince int64  `json:",omitzero"`
	SuspendedBy    string `json:",omitzero"` // as in Suspension
	Reason         string `json:",omitzero"`
	// ResetAt is the last end of an anchored window that the upstream reported; 0 for none.
	ResetAt int64    `json:",omitzero"`
	Keep    int64    `json:",omitzero"` // µs that entries are kept
	Floor   int64    `json:",omitzero"` // the newest stamp ever, if its entry or hold is gone
	Levels  []Level  `json:",omitzero"`
	Others  []Others `json:",omitzero"` // usage by other programs, by window
}

// Bucket is one bucket at one moment.
type Bucket struct {
	Credential string
	Name       string
	Log        Log
	Holds      []Hold // holds that are not entries yet, including expired ones, in any order
	Lapsed     *Hold  // the reservation in scope, if it has become an entry
	State      State

	now     int64
	newest  LogEntry // of the stored log; zero for an empty one
	lapses  []lapse  // ordered; see schedule
	ordered bool     // lapses is complete
	first   int64    // the earliest expiry among holds that become entries
	levels  map[Rate]int64
	read    map[Rate]Level // what earlier steps read; nil if the decision is not bounded
	broken  error          // the first error of the log, or of what it contains
}

// lapse is a hold that becomes an entry, and the entry's stamp.
type lapse struct {
	hold  *Hold
	at    int64
	units int64
}

// MaxAhead is how far the newest entry may be ahead of the clock, in µs. Clocks are set back by
// hours at most. Beyond that, the stamp or the clock is wrong, and every decision fails.
const MaxAhead = int64(24 * time.Hour / time.Microsecond)

// begin reads the newest entry, for a decision at the clock's time.
func (b *Bucket) begin(now int64) {
	b.now, b.broken, b.levels = now, nil, nil
	b.lapses, b.ordered, b.first = b.lapses[:0], false, Never
	b.newest = LogEntry{}
	e, found, err := b.Log.Newest()
	b.fail(err)
	switch {
	case !found:
	case e.Units < 1 || e.Units > MaxUnits || e.Total < e.Units || e.Total > MaxTotal:
		b.fail(&DamagedError{Credential: b.Credential, Bucket: b.Name,
			Lost: e.Units < 1 || e.Units > MaxUnits,
			What: fmt.Sprintf("its newest entry has %d units and a total of %d", e.Units, e.Total)})
	case max(e.At, b.State.Floor) > now+MaxAhead:
		b.damaged("its newest entry is from %s and the clock shows %s",
			utcText(max(e.At, b.State.Floor)), utcText(now))
	default:
		b.newest = e
	}
	for i := range b.Holds {
		h := &b.Holds[i]
		if h.Created > now+MaxAhead {
			b.damaged("the reservation %.64q was made at %s and the clock shows %s", h.ID,
				utcText(h.Created), utcText(now))
		}
		if h.Units < 1 || h.Drawn < 0 || h.Drawn > h.Units || h.AtMost() > MaxUnits {
			b.damaged("the reservation %.64q is of %d units, %d of them drawn", h.ID, h.Units,
				h.Drawn)
		}
		if h.charges() {
			b.first = min(b.first, h.Expires)
		}
	}
}

// floor returns the earliest time of a decision on the bucket: after every entry there ever was,
// and not before the newest hold. Time does not run backwards in a log.
func (b *Bucket) floor() int64 {
	floor := -Never
	if b.State.Floor != 0 {
		floor = b.State.Floor + 1
	}
	if b.newest.Units > 0 {
		floor = max(floor, b.newest.At+1)
	}
	for i := range b.Holds {
		floor = max(floor, b.Holds[i].Created)
	}
	return floor
}

// schedule returns all future lapses in the order of their entries. Each is stamped when the hold
// expires, but later than the entry before it.
func (b *Bucket) schedule() []lapse {
	if b.ordered {
		return b.lapses
	}
	b.ordered = true
	for i := range b.Holds {
		if h := &b.Holds[i]; h.charges() {
			b.lapses = append(b.lapses, lapse{hold: h, units: h.AtMost()})
		}
	}
	slices.SortFunc(b.lapses, func(x, y lapse) int {
		return cmp.Or(cmp.Compare(x.hold.Expires, y.hold.Expires),
			cmp.Compare(x.hold.ID, y.hold.ID))
	})
	last := b.floor() - 1
	for i := range b.lapses {
		last = max(b.lapses[i].hold.Expires, last+1)
		b.lapses[i].at = last
	}
	return b.lapses
}

// lapsed returns the holds that have become entries by n, even if the store has not written them.
func (b *Bucket) lapsed(n int64) []lapse {
	if b.first > n {
		return nil
	}
	all := b.schedule()
	i, _ := slices.BinarySearchFunc(all, n, func(l lapse, n int64) int {
		return cmp.Compare(l.at, n+1)
	})
	return all[:i]
}

// isOpen reports whether a hold still sets units aside at n.
func isOpen(h *Hold, n int64) bool { return h.Expires > n }

// held returns the units set aside at n, and the maximum that they may become.
func (b *Bucket) held(n int64) (held, atMost int64) {
	for i := range b.Holds {
		if h := &b.Holds[i]; isOpen(h, n) {
			held, atMost = held+h.Left(), atMost+h.AtMost()
		}
	}
	return held, atMost
}

// Recorded returns the maximum units that all holds, open or not, may become. A store keeps the
// number apart from the holds, so that a check can find how many units are missing.
func (b *Bucket) Recorded() (units int64) {
	for i := range b.Holds {
		units += b.Holds[i].AtMost()
	}
	return units
}

// find returns the reservation if it is open at n.
func (b *Bucket) find(reservation string, n int64) (Hold, error) {
	for i := range b.Holds {
		if h := &b.Holds[i]; h.ID == reservation && isOpen(h, n) {
			return *h, nil
		}
	}
	return Hold{}, fmt.Errorf("%s: %w", reservation, ErrNoReservation)
}

// logBase returns the running total of the stored log just before the first entry after a time.
func (b *Bucket) logBase(after int64) int64 {
	if after >= b.newest.At || b.broken != nil {
		return b.newest.Total
	}
	base, err := b.Log.TotalAt(after + 1)
	b.fail(err)
	if base < 0 || base > b.newest.Total {
		b.damaged(Unsteady)
		return 0
	}
	return base
}

// charged returns the units of the entries stamped after a time, as of n.
func (b *Bucket) charged(after, n int64) int64 {
	units := b.newest.Total - b.logBase(after)
	for _, l := range b.lapsed(n) {
		if l.at > after {
			units += l.units
		}
	}
	return units
}

// own returns the units charged in the window at n by the log alone; for a restoring window, its
// level rounded up.
func (b *Bucket) own(w Window, n int64) int64 {
	switch {
	case w.Concurrent:
		return 0
	case w.IsRestoring():
		return w.Restore.rounded(b.level(w.Restore, n))
	}
	return b.charged(w.after(n, b.State.ResetAt), n)
}

// used returns the units used in the limit's window at n, including those of other programs. A pace
// counts the units of the log alone.
func (b *Bucket) used(l Limit, n int64) int64 {
	w := l.Window
	o := b.othersOf(l)
	switch {
	case o.Units == 0:
		return b.own(w, n)
	case w.IsRestoring():
		return w.Restore.rounded(b.levelOf(l, n))
	case o.At > w.after(n, b.State.ResetAt):
		return b.own(w, n) + o.Units
	}
	return b.own(w, n)
}

// othersOf returns the usage by other programs that counts under the limit.
func (b *Bucket) othersOf(l Limit) (o Others) {
	if l.Pace != nil || len(b.State.Others) == 0 {
		return o
	}
	window := l.Window.String()
	for _, o := range b.State.Others {
		if o.Window == window {
			return o
		}
	}
	return o
}

// Unsteady describes entries whose totals contradict each other.
const Unsteady = "the totals of its entries do not rise by their units"

// Steady returns an error unless the totals of consecutive entries rise by their units.
func (b *Bucket) Steady(entries []LogEntry) error {
	for i, e := range entries {
		if e.Units < 1 || i > 0 && e.Total-e.Units != entries[i-1].Total {
			return b.Damage(Unsteady)
		}
	}
	return nil
}

// Damage returns the error of a bucket that must be repaired first.
func (b *Bucket) Damage(format string, args ...any) error {
	return &DamagedError{Credential: b.Credential, Bucket: b.Name,
		What: fmt.Sprintf(format, args...)}
}

// fail keeps the first error. After an error, the decision is void.
func (b *Bucket) fail(err error) {
	if b.broken == nil && err != nil {
		b.broken = err
	}
}

func (b *Bucket) damaged(format string, args ...any) { b.fail(b.Damage(format, args...)) }

// Entries returns stored entries as ledgers list them for the query. Errors: DamagedError when
// labels cannot be read.
func (q Query) Entries(stored []LogEntry) ([]Entry, error) {
	var entries []Entry
	for _, e := range stored {
		labels, err := ParseLabels(e.Labels)
		if err != nil {
			return nil, &DamagedError{Credential: q.Credential, Bucket: q.Bucket,
				What: "the labels of an entry cannot be read"}
		}
		entries = append(entries, Entry{At: StampTime(e.At), ID: e.ID, Bucket: q.Bucket,
			Units: e.Units, Total: e.Total, Labels: labels})
	}
	return entries, nil
}
