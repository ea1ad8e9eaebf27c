package quota

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Checker is a ledger that can hold its buckets against their own entries, and mend what disagrees.
type Checker interface {
	// CheckBucket says what is wrong with a bucket. With repair it also mends what can be mended,
	// in one atomic step, and the findings are those of that step.
	CheckBucket(ctx context.Context, credential, bucket string, repair bool) ([]Finding, error)
}

// Finding is something that is wrong with a bucket.
type Finding struct {
	Bucket string
	What   string // is wrong
	Repair string // what a repair changes, or why there is none
	Mends  bool   // there is one
}

// Findings are what a check has found.
type Findings []Finding

// Add adds a finding; mends reports whether the repair changes anything.
func (f *Findings) Add(what, repair string, mends bool) {
	*f = append(*f, Finding{What: what, Repair: repair, Mends: mends})
}

// Illegible adds that the labels of so many entries cannot be read.
func (f *Findings) Illegible(entries int) {
	if entries > 0 {
		f.Add(fmt.Sprintf("the labels of %d entries cannot be read", entries),
			"they are marked as lost; the units count all the same", true)
	}
}

// Unread adds that so many notes of what was taken off entries cannot be read.
func (f *Findings) Unread(takings int) {
	if takings > 0 {
		f.Add(fmt.Sprintf("%d notes of corrections cannot be read", takings),
			"they are removed: what they took off stays off", true)
	}
}

// Unheld adds what is wrong with a reservation that no repair can make out.
func (f *Findings) Unheld(what string) {
	f.Add(what, "it is removed: how much it holds is unknown, and it will hold nothing", true)
}

// Mends reports whether a repair changes anything.
func (f Findings) Mends() bool {
	return slices.ContainsFunc(f, func(f Finding) bool { return f.Mends })
}

// In is the findings with the name of the bucket.
func (f Findings) In(bucket string) []Finding {
	for i := range f {
		f[i].Bucket = bucket
	}
	return f
}

// Line is an entry as a store holds it, whether it can be read or not.
type Line struct {
	At     int64 // stamp
	NoTime bool  // the stamp cannot be read
	Units  int64 // 0 when they cannot be read; of a mended line also when it is to be removed
	Total  int64 // 0 when it cannot be read
	Left   bool  // of a mended line: it stays as it is, unreadable
}

// Books are a bucket as a store holds it, to be held against themselves.
type Books struct {
	Lines  []Line // in the order of their stamps
	Total  int64  // of the state
	Newest int64  // of the state
	Known  bool   // the state could be read; there is none to hold against the lines otherwise
	Now    int64
	Keep   int64 // µs that lines are kept
}

// Mended is what the books must be: lines with units, and their running totals anew. No unit comes
// free that a line has.
type Mended struct {
	Findings
	Lines  []Line // one for each of the books
	Total  int64
	Newest int64
}

// Mend recomputes all totals from the lines. A line that cannot be read has the units that the
// totals around it leave it; where they leave it none it is removed, and where they say nothing it
// stays. A line at no time counts as of now.
func (b Books) Mend() Mended {
	m := Mended{Lines: slices.Clone(b.Lines), Newest: b.Newest}
	if !b.Known {
		m.Newest = 0
	}
	m.readUnits(b)
	m.setTimes(b)
	m.setTotals(b)
	return m
}

// readUnits finds the units of the lines that have none, from what the totals around them leave.
func (m *Mended) readUnits(b Books) {
	for i := 0; i < len(b.Lines); {
		if b.Lines[i].Units > 0 {
			i++
			continue
		}
		end := i // of a run of lines that cannot be read
		for end < len(b.Lines) && b.Lines[end].Units == 0 {
			end++
		}
		units, known := b.between(i, end)
		for j := i; j < end; j++ {
			what := "an entry cannot be read, " + b.Lines[j].when()
			switch {
			case !known && !b.Lines[j].NoTime && b.Lines[j].At <= b.Now-b.Keep:
				m.Add(what, "it is removed: it is older than every window", true)
			case !known:
				m.Lines[j].Left = true
				m.Add(what, "none: its units are unknown. Charges that need it are denied until "+
					"it is older than every window, or until you delete it", false)
			case units > 0 && j == end-1: // the last of them, which leaves its window last
				m.Lines[j].Units = units
				m.Add(what, fmt.Sprintf("it becomes an entry of %d units, by the totals around "+
					"it; who spent them is unknown", units), true)
			default:
				m.Add(what, "it is removed: by the totals around it, it has no units", true)
			}
		}
		i = end
	}
}

// between is how many units the totals around the lines i to end leave for them.
func (b Books) between(i, end int) (units int64, known bool) {
	if i == 0 || b.Lines[i-1].Total == 0 {
		return 0, false
	}
	next := b.Total
	switch {
	case end < len(b.Lines):
		next = b.Lines[end].Total - b.Lines[end].Units
	case !b.Known:
		return 0, false
	}
	units = next - b.Lines[i-1].Total
	return units, units >= 0 && units <= MaxUnits
}

// setTimes gives each line a time of its own, later than the one before. Lines at no time are moved
// to now, behind all others.
func (m *Mended) setTimes(b Books) {
	m.partTimes()
	before := m.Newest
	for _, l := range m.Lines {
		if !l.NoTime && l.At > m.Newest {
			m.Newest = l.At
		}
	}
	if b.Known && m.Newest > before {
		m.Add(fmt.Sprintf("its newest entry is from %s, later than the newest time in its state",
			utcText(m.Newest)), "the newest time in its state becomes that of the entry", true)
	}
	for i := range m.Lines {
		l := &m.Lines[i]
		if l.NoTime && l.Units > 0 {
			m.Newest = max(m.Newest+1, b.Now)
			l.At, l.NoTime = m.Newest, false
			m.Add(fmt.Sprintf("the time of an entry of %d units cannot be read", l.Units),
				"it counts from now", true)
		}
	}
}

// partTimes moves lines that are at the same time as another: a store does not keep these in order.
func (m *Mended) partTimes() {
	moved, last := 0, int64(-1)
	for i := range m.Lines {
		l := &m.Lines[i]
		if l.NoTime || l.Units == 0 && !l.Left {
			continue
		}
		if l.At <= last && !l.Left {
			l.At = last + 1
			moved++
		}
		last = max(last, l.At)
	}
	if moved > 0 {
		m.Add(fmt.Sprintf("%d entries are not later than the one before", moved),
			"each is moved to the microsecond after it", true)
	}
}

// setTotals writes the running totals anew. They begin where most lines can stay as they are.
func (m *Mended) setTotals(b Books) {
	order := m.order(b)
	var sum int64
	bases := make(map[int64]int)
	for _, i := range order {
		sum += m.Lines[i].Units
		bases[m.Lines[i].Total-sum]++
	}
	base, most := int64(0), 0
	for candidate, lines := range bases {
		fits := candidate >= 0 && candidate+sum <= MaxTotal-MaxUnits
		if fits && (lines > most || lines == most && candidate < base) {
			base, most = candidate, lines
		}
	}
	m.Total = base
	changed, first := 0, Line{}
	for _, i := range order {
		l := &m.Lines[i]
		m.Total += l.Units
		if l.Total != m.Total && b.Lines[i].Units > 0 && !b.Lines[i].NoTime {
			if changed++; changed == 1 {
				first = *l
			}
		}
		l.Total = m.Total
	}
	if changed > 0 {
		m.Add(fmt.Sprintf("running totals that do not match the entries' units: %d, the first %s",
			changed, first.when()), fmt.Sprintf("they are recomputed: the %d entries add up to %d "+
			"units", len(order), sum), true)
	}
	m.checkState(b, len(order) == 0)
}

// order is the lines that count, in the order of their stamps; those that had no time are the
// newest.
func (m *Mended) order(b Books) (order []int) {
	for _, late := range []bool{false, true} {
		for i, l := range m.Lines {
			if l.Units > 0 && b.Lines[i].NoTime == late {
				order = append(order, i)
			}
		}
	}
	return order
}

func (m *Mended) checkState(b Books, empty bool) {
	switch {
	case !b.Known || b.Total == m.Total:
	case empty && b.Newest <= b.Now-b.Keep: // they have lapsed, as they should
		m.Total = b.Total
	case empty:
		m.Add(fmt.Sprintf("there are no entries, but the total in its state is %d", b.Total),
			"its total becomes 0: what was charged is lost, and all units are free again", true)
	default:
		m.Add(fmt.Sprintf("the total in its state is %d, but its entries add up to %d", b.Total,
			m.Total), fmt.Sprintf("its total becomes %d, the sum of its entries", m.Total), true)
	}
}

func (l Line) when() string {
	if l.NoTime {
		return "at a time that cannot be read"
	}
	return "at " + utcText(l.At)
}

func utcText(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.000000Z")
}
