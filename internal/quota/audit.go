package quota

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"time"
)

// Audit compares a bucket with its own entries, which the store passes to it one after the other.
// It reports findings, and computes what a repair writes: holds and state of the bucket, each
// entry, and the sums.
type Audit struct {
	Findings
	Sums         Tally // sums of the entries since the time passed to NewAudit
	Entries      int   // number of entries passed so far
	ChangedHolds bool  // a repair writes the holds

	bucket *Bucket
	now    int64
	since  int64

	ahead                 bool  // a time is far later than the clock
	totals, moved, labels int   // numbers of wrong entries
	total, last           int64 // of the previous entry; total is -1 before the first
}

// NewAudit begins an audit of a bucket as its store has read it, with sums from a time on.
func NewAudit(b *Bucket, now, since int64) *Audit {
	return &Audit{bucket: b, now: now, since: since, total: -1, last: -Never}
}

// LostLabels stand for labels that cannot be read.
const LostLabels = "labels_lost=unread"

// CheckHolds audits holds and state. intact reports whether they match their checksum, recorded is
// the number of units that all holds could take when they were written, and unread is the number of
// holds that the store cannot read.
func (a *Audit) CheckHolds(intact bool, recorded int64, unread int) {
	if !intact || unread > 0 {
		a.replaceHolds(a.bucket, a.now, recorded, unread)
		a.ChangedHolds = true
	}
}

// Interrupted reports a repair that ended before it was done.
func (a *Audit) Interrupted() { a.Add("a repair of it was interrupted", "it is completed", true) }

// Missing reports that the store lacks the state of the bucket, by its name for that.
func (a *Audit) Missing(state string) {
	if a.Entries > 0 || len(a.bucket.Holds) > 0 {
		a.Add("its "+state+" is missing", "it is written again; the bucket's suspension and the "+
			"end of its anchored window are lost", true)
	}
}

// CheckTime reports times that are far later than the clock. A repair moves them to now.
func (a *Audit) CheckTime(newest int64) {
	b := a.bucket
	latest := max(b.State.Floor, newest)
	for _, h := range b.Holds {
		latest = max(latest, h.Created)
	}
	if a.ahead = latest > a.now+MaxAhead; !a.ahead {
		return
	}
	a.Add(fmt.Sprintf("its newest time is %s, and the clock shows %s", shortTime(latest),
		shortTime(a.now)), "what is later than the clock is moved to now, if the clock is right; "+
		"the units count from now on", true)
	for i := range b.Holds {
		h := &b.Holds[i]
		if late := h.Created - a.now; late > 0 {
			h.Created, h.Expires = a.now, h.Expires-late
			a.ChangedHolds = true
		}
	}
}

// CheckEntry audits the next entry and returns it as a repair writes it. text describes it in a
// finding. It returns false if the units are unknown.
func (a *Audit) CheckEntry(e LogEntry, text string) (LogEntry, bool) {
	a.Entries++
	if e.Units < 1 || e.Units > MaxUnits {
		a.Add("an entry cannot be read, at "+text, "none: its units are unknown. Delete it, and "+
			"adjust the bucket by its units", false)
		a.total = -1
		return e, false
	}
	if a.total < 0 { // assume that the first readable entry is right
		if a.total = e.Total - e.Units; a.total < 0 || e.Total > MaxTotal/2 {
			a.total = 0
		}
	}
	if a.total += e.Units; e.Total != a.total {
		e.Total = a.total
		a.totals++
	}
	if a.ahead && e.At > a.now {
		e.At = max(a.now, a.last+1)
		a.moved++
	}
	a.last = e.At
	if _, err := ParseLabels(e.Labels); err != nil {
		e.Labels = LostLabels
		a.labels++
	}
	if e.At >= a.since {
		a.Sums.Add(e.At, CutRun(e.Labels), e.Units, 1)
	}
	return e, true
}

// End reports the findings about all entries, and about the sums that the store keeps. After it,
// the bucket has the state that a repair writes.
func (a *Audit) End(stored Tally) {
	if a.totals > 0 {
		a.Add(fmt.Sprintf("%d of %d running totals do not follow from the entries before",
			a.totals, a.Entries), "they are added up again", true)
	}
	if a.labels > 0 {
		a.Add(fmt.Sprintf("the labels of %d entries cannot be read", a.labels),
			"they are marked as lost; the units count all the same", true)
	}
	if a.moved == 0 {
		a.Findings = append(a.Findings, a.Sums.Differs(stored)...)
	}
	s := &a.bucket.State
	s.Levels = nil // they are added up again
	s.Keep = max(s.Keep, Retention.Microseconds())
	s.ResetAt, s.Floor = max(0, s.ResetAt), min(s.Floor, a.now)
}

func shortTime(micros int64) string { return StampTime(micros).Format(time.RFC3339) }

// Finding is something that is wrong with a bucket.
type Finding struct {
	Bucket string
	What   string // what is wrong
	Repair string // what a repair changes, or why there is none
	Mends  bool   // whether there is a repair
}

// Findings is the result of a check.
type Findings []Finding

// Add adds a finding; mends reports whether the repair changes anything.
func (f *Findings) Add(what, repair string, mends bool) {
	*f = append(*f, Finding{What: what, Repair: repair, Mends: mends})
}

// Unread adds the number of notes of corrections that cannot be read.
func (f *Findings) Unread(takings int) {
	if takings > 0 {
		f.Add(fmt.Sprintf("%d notes of corrections cannot be read", takings),
			"they are removed; units that corrections took off stay off", true)
	}
}

// replaceHolds replaces the holds if they or the state are damaged. A repair never makes room: held
// units stay held for at least a day and are then charged. Units that recorded has and the holds
// lack get a new reservation. CheckHolds explains recorded and unread.
func (f *Findings) replaceHolds(b *Bucket, now, recorded int64, unread int) {
	var holds []Hold
	var units int64
	day := (24 * time.Hour).Microseconds()
	for _, h := range b.Holds {
		if h.Units < 1 || h.Drawn < 0 || h.Drawn > h.Units || h.AtMost() > MaxUnits {
			unread++
			continue
		}
		h.Created, h.Lapse = min(h.Created, now), LapseCharge
		h.Expires = min(max(h.Expires, now+day), now+MaxWindow.Microseconds())
		if _, err := ParseLabels(h.Labels); err != nil {
			h.Labels = ""
		}
		holds, units = append(holds, h), units+h.AtMost()
	}
	if missing := min(recorded-units, MaxUnits); missing > 0 {
		holds = append(holds, Hold{ID: ReservationID(NewID(StampTime(now)), b.Name), Units: missing,
			Created: now, Expires: now + day, Lapse: LapseCharge, Note: "lost reservations"})
		units += missing
	}
	b.Holds = holds
	what := "its reservations or its state are not what was written"
	if unread > 0 {
		what += fmt.Sprintf("; reservations that cannot be read: %d", unread)
	}
	f.Add(what, fmt.Sprintf("%d units stay held for at least a day and are charged then, unless you "+
		"settle or release them (quotactl reservations)", units), true)
}

// In returns the findings with the name of the bucket.
func (f Findings) In(bucket string) []Finding {
	for i := range f {
		f[i].Bucket = bucket
	}
	return f
}

func utcText(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.000000Z")
}

// Digest returns a checksum of the bucket's state and holds, whatever their order. A store keeps it
// with them and refuses a bucket with a different one, so that damage never makes room.
func (b *Bucket) Digest() int64 {
	s := b.State
	d := digest{}
	d.text(b.Name)
	d.numbers(s.SuspendedUntil, s.SuspendedSince, s.ResetAt, s.Keep, s.Floor)
	d.text(s.SuspendedBy)
	d.text(s.Reason)
	for _, l := range s.Levels {
		d.numbers(l.Num, l.Den, l.At, l.Total, l.Value)
	}
	for _, o := range s.Others {
		d.text(o.Window)
		d.numbers(o.At, o.Units, o.Level)
	}
	sum := d.sum()
	for i := range b.Holds {
		h := &b.Holds[i]
		d.line = d.line[:0]
		d.text(b.Name)
		d.text(h.ID)
		d.numbers(h.Units, h.Most, h.Drawn, h.Created, h.Expires)
		d.text(string(h.Lapse))
		d.text(h.Labels)
		d.text(h.Note)
		d.text(strconv.FormatBool(h.Manual))
		sum += d.sum()
	}
	return int64(sum)
}

// digest is the text of a checksum.
type digest struct{ line []byte }

func (d *digest) numbers(list ...int64) {
	for _, n := range list {
		d.line = append(strconv.AppendInt(d.line, n, 10), ' ')
	}
}

func (d *digest) text(s string) { d.line = append(append(d.line, s...), 0) }

func (d *digest) sum() uint64 {
	h := fnv.New64a()
	h.Write(d.line)
	return h.Sum64()
}
