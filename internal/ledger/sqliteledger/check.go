package sqliteledger

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"quotabudget/internal/quota"
)

var _ quota.Checker = (*Ledger)(nil)

// CheckBucket implements quota.Checker. A repair is one transaction with what it reads.
func (l *Ledger) CheckBucket(ctx context.Context, credential, name string, repair bool) (
	found []quota.Finding, err error) {
	if !repair {
		err = l.view(ctx, func(s *session) { found = s.check(credential, name).In(name) })
		return found, err
	}
	err = l.update(ctx, func(s *session) error {
		c := s.check(credential, name)
		if found = c.In(name); len(found) > 0 {
			c.mend()
		}
		return nil
	})
	return found, err
}

// checked is a bucket with what is wrong with it, and what it must become.
type checked struct {
	quota.Findings
	s       *session
	id      int64
	rows    []entryRow
	becomes []quota.Line
	total   int64
	newest  int64
	keep    int64
	reset   int64
	settled []string // reservations that go
	forgets bool     // what others used
	takings []noteID // notes of corrections that go
	sums    quota.Tally
}

// entryRow is an entry as it is stored.
type entryRow struct {
	at, units, total int64
	id, labels       string
	illegible        bool // its labels
}

// lostLabels stand for labels that cannot be read.
const lostLabels = "labels_lost=unread"

func (s *session) check(credential, name string) *checked {
	c := &checked{s: s}
	b := quota.Books{Known: true, Now: s.now()}
	var held, holds, atMost, most int64 // by its state, and by its reservations
	var others string
	if !s.find("check_bucket", []any{credential, name}, &c.id, &b.Total, &b.Newest, &b.Keep,
		&c.reset, &others, &held, &atMost, &holds, &most) {
		return c
	}
	if b.Total < 0 || b.Total > quota.MaxTotal || b.Newest > quota.MaxTotal || b.Keep < 0 ||
		b.Keep > quota.Never {
		c.Add(fmt.Sprintf("its state cannot be read, with a total of %d", b.Total),
			"it is rebuilt from its entries", true)
		b.Total, b.Newest, b.Keep, b.Known = 0, 0, 0, false
	}
	if c.reset < 0 || c.reset > quota.MaxTotal {
		c.Add("the end of its anchored window cannot be read", "it is forgotten", true)
		c.reset = 0
	}
	if _, ok := parseOthers(others); !ok {
		c.forgets = true
		c.Add("what others used cannot be read", "it is forgotten: the next response of the upstream "+
			"reports it again", true)
	}
	c.keep = b.Keep
	b.Keep = max(b.Keep, quota.Retention.Microseconds())
	c.read(&b)
	m := b.Mend()
	c.becomes, c.total, c.newest = m.Lines, m.Total, m.Newest
	c.Findings = append(c.Findings, m.Findings...)
	c.checkReservations()
	c.checkSums()
	c.checkLevels()
	c.checkTakings()
	if held == holds && atMost != most {
		c.Add(fmt.Sprintf("its state counts %d units that its reservations can take, and they "+
			"can take %d", atMost, most), "they are counted again", true)
	}
	if held != holds {
		c.Add(fmt.Sprintf("its state counts %d units as held, and its reservations hold %d",
			held, holds), "they are counted again", true)
	}
	return c
}

// read reads the entries.
func (c *checked) read(b *quota.Books) {
	illegible := 0
	c.s.each("check_entries", []any{c.id}, func(row *sql.Rows) error {
		var e entryRow
		err := row.Scan(&e.at, &e.id, &e.units, &e.total, &e.labels)
		line := quota.Line{At: e.at, NoTime: e.at > quota.MaxTotal, Units: e.units, Total: e.total}
		if e.units < 1 || e.units > quota.MaxUnits {
			line.Units = 0
		}
		if e.total < 1 || e.total > quota.MaxTotal {
			line.Total = 0
		}
		if _, err := quota.ParseLabels(e.labels); err != nil {
			e.illegible = true
			illegible++
		}
		c.rows, b.Lines = append(c.rows, e), append(b.Lines, line)
		return err
	})
	c.Illegible(illegible)
}

func (c *checked) checkReservations() {
	c.s.each("check_reservations", []any{c.id}, func(row *sql.Rows) error {
		var id string
		var units, drawn int64
		err := row.Scan(&id, &units, &drawn)
		if units < 1 || units > quota.MaxUnits || drawn < 0 || drawn > units {
			c.settled = append(c.settled, id)
			c.Unheld(fmt.Sprintf("the reservation %.64q is of %d units, %d of them drawn",
				id, units, drawn))
		}
		return err
	})
}

// checkSums holds the sums against what the entries must be.
func (c *checked) checkSums() {
	for i, line := range c.becomes {
		if line.Units > 0 && !line.Left {
			c.sums.Add(line.At, withoutRun(c.labels(i)), line.Units, 1)
		}
	}
	var kept quota.Tally
	(&bucket{s: c.s, id: c.id}).sums(-quota.Never, kept.Add)
	if !c.Mends() { // a repair writes the sums anyway
		c.Findings = append(c.Findings, c.sums.Differs(kept)...)
	}
}

// noteID is which note of a correction.
type noteID struct {
	at int64
	id string
}

// checkTakings looks for notes that cannot be read.
func (c *checked) checkTakings() {
	c.s.each("taking_list", []any{c.id, -quota.Never, quota.Never, -1}, func(row *sql.Rows) error {
		var of noteID
		var units int64
		var labels string
		err := row.Scan(&of.at, &of.id, &units, &labels)
		if _, bad := quota.ParseLabels(labels); err == nil && (bad != nil || units < 1) {
			c.takings = append(c.takings, of)
		}
		return err
	})
	c.Unread(len(c.takings))
}

// checkLevels looks for levels that are lower than the entries say. They may be higher: older
// entries are gone.
func (c *checked) checkLevels() {
	c.s.each("level_list", []any{c.id}, func(row *sql.Rows) error {
		var of terms
		var m mark
		err := row.Scan(&of.num, &of.den, &m.at, &m.total, &m.level)
		if err == nil && m.level < c.levelAt(of, m) {
			c.Add(fmt.Sprintf("a level is kept that is lower than its entries say, at %d", m.at),
				"it is forgotten", true)
		}
		return err
	})
}

// levelAt is the level by the entries up to a mark; 0 when there is no such entry.
func (c *checked) levelAt(of terms, m mark) (level int64) {
	rate := quota.Rate{Units: of.num, Per: time.Duration(of.den) * time.Microsecond}
	var last entryRow
	for i, e := range c.rows {
		if e.at > m.at {
			break
		}
		if i > 0 {
			level = rate.LevelAfter(level, e.at-last.at)
		}
		level, last = level+of.den*e.units, e
	}
	if last.at != m.at || last.total != m.total {
		return 0
	}
	return level
}

// withoutRun cuts the run out of a line of labels.
func withoutRun(line string) string {
	before, after, found := strings.Cut("&"+line, "&"+quota.LabelRun+"=")
	if !found {
		return line
	}
	_, rest, _ := strings.Cut(after, "&")
	return strings.Trim(before+"&"+rest, "&")
}

// labels are those that the entry i must have.
func (c *checked) labels(i int) string {
	row, line := c.rows[i], c.becomes[i]
	if row.illegible || line.Units != row.units && !line.Left {
		return lostLabels
	}
	return row.labels
}

// mend writes what the bucket must be.
func (c *checked) mend() {
	for i, line := range c.becomes {
		row, labels := c.rows[i], c.labels(i)
		same := line.At == row.at && line.Units == row.units && line.Total == row.total &&
			labels == row.labels
		switch {
		case line.Left:
		case line.Units == 0:
			c.s.change("entry_remove", c.id, row.at)
		case !same:
			c.s.change("mend_entry", c.id, row.at, line.At, line.Units, line.Total, labels)
		}
	}
	if c.forgets {
		c.s.change("bucket_others", c.id, "")
	}
	for _, id := range c.settled {
		c.s.change("reservation_remove", c.id, id)
	}
	for _, of := range c.takings {
		c.s.change("taking_remove", c.id, of.at, of.id)
	}
	c.s.change("sum_clear", c.id)
	c.sums.Each(func(at int64, labels string, units, charges int64) {
		c.s.change("sum_add", c.id, at, labels, units, charges)
	})
	c.s.change("mend_held", c.id)
	c.s.change("level_clear", c.id)
	c.s.change("mend_bucket", c.id, c.total, c.newest, c.keep, c.reset)
}
