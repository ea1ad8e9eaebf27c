package sqliteledger

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"quotabudget/internal/quota"
)

var _ quota.Checker = (*Ledger)(nil)

// BucketsOf implements quota.Checker.
func (l *Ledger) BucketsOf(ctx context.Context, credential string) (names []string, err error) {
	err = l.view(ctx, func(s *session) error {
		names = nil
		return s.each("check_buckets", []any{credential}, func(row *sql.Rows) error {
			var name string
			err := row.Scan(&name)
			names = append(names, name)
			return err
		})
	})
	return names, err
}

// CheckBucket implements quota.Checker. A repair is one transaction with what it reads.
func (l *Ledger) CheckBucket(
	ctx context.Context,
	credential, name string,
	repair bool,
) (findings []quota.Finding, err error) {
	check := func(s *session) error {
		c, err := s.check(credential, name)
		if findings = c.findings; err != nil || !repair || len(findings) == 0 {
			return err
		}
		return c.mend()
	}
	if repair {
		err = l.update(ctx, check)
	} else {
		err = l.view(ctx, check)
	}
	return findings, err
}

// checked is a bucket with what is wrong with it, and what it must become.
type checked struct {
	s        *session
	id       int64
	rows     []entryRow
	becomes  []quota.Line
	total    int64
	newest   int64
	keep     int64
	settled  []string // reservations that go
	sums     quota.Tally
	findings []quota.Finding
}

// entryRow is an entry as it is stored.
type entryRow struct {
	at, units, total int64
	id, labels       string
	illegible        bool // its labels
}

// lostLabels stand for labels that cannot be read.
const lostLabels = "labels_lost=unread"

func (s *session) check(credential, name string) (checked, error) {
	c := checked{s: s}
	b := quota.Books{Known: true, Now: s.now()}
	var held, holds int64 // by its state, and by its reservations
	if found, err := s.find("check_bucket", []any{credential, name}, &c.id, &b.Total, &b.Newest, &b.Keep,
		&held, &holds); !found || err != nil {
		return c, err
	}
	if b.Total < 0 || b.Total > quota.MaxTotal || b.Newest > quota.MaxTotal || b.Keep < 0 ||
		b.Keep > quota.Never {
		c.found(
			fmt.Sprintf("its state cannot be read, with a total of %d", b.Total),
			"it is made anew of its entries",
			true,
		)
		b.Total, b.Newest, b.Keep, b.Known = 0, 0, 0, false
	}
	c.keep = b.Keep
	b.Keep = max(b.Keep, quota.Retention.Microseconds())
	if err := c.read(&b); err != nil {
		return c, err
	}
	m := b.Mend()
	c.becomes, c.total, c.newest = m.Lines, m.Total, m.Newest
	c.findings = append(c.findings, m.Findings...)
	if err := c.checkReservations(); err != nil {
		return c, err
	}
	if err := c.checkSums(); err != nil {
		return c, err
	}
	if held != holds {
		c.found(
			fmt.Sprintf("its state counts %d units as held, and its reservations hold %d", held, holds),
			"they are counted again",
			true,
		)
	}
	for i := range c.findings {
		c.findings[i].Bucket = name
	}
	return c, nil
}

func (c *checked) found(what, repair string, mends bool) {
	c.findings = append(c.findings, quota.Finding{What: what, Repair: repair, Mends: mends})
}

func (c *checked) mends() bool {
	return slices.ContainsFunc(c.findings, func(f quota.Finding) bool { return f.Mends })
}

// read reads the entries.
func (c *checked) read(b *quota.Books) error {
	illegible := 0
	err := c.s.each("check_entries", []any{c.id}, func(row *sql.Rows) error {
		var e entryRow
		if err := row.Scan(&e.at, &e.id, &e.units, &e.total, &e.labels); err != nil {
			return err
		}
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
		return nil
	})
	if illegible > 0 {
		c.found(
			fmt.Sprintf("the labels of %d entries cannot be read", illegible),
			"they are marked as lost; the units count all the same",
			true,
		)
	}
	return err
}

func (c *checked) checkReservations() error {
	return c.s.each("check_reservations", []any{c.id}, func(row *sql.Rows) error {
		var id string
		var units, drawn int64
		if err := row.Scan(&id, &units, &drawn); err != nil {
			return err
		}
		if units < 1 || units > quota.MaxUnits || drawn < 0 || drawn > units {
			c.settled = append(c.settled, id)
			c.found(
				fmt.Sprintf(
					"the reservation %.64q is of %d units, %d of them drawn",
					id,
					units,
					drawn,
				),
				"it is removed: how much it holds is unknown, and it will hold nothing",
				true,
			)
		}
		return nil
	})
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
func (c *checked) mend() error {
	for i, line := range c.becomes {
		row, labels := c.rows[i], c.labels(i)
		if line.Units == 0 && !line.Left {
			if err := c.s.change("entry_remove", c.id, row.at); err != nil {
				return err
			}
			continue
		}
		if line.Left ||
			line.At == row.at && line.Units == row.units && line.Total == row.total &&
				labels == row.labels {
			continue
		}
		if err := c.s.change("mend_entry", c.id, row.at, line.At, line.Units, line.Total, labels); err != nil {
			return err
		}
	}
	for _, id := range c.settled {
		if err := c.s.change("reservation_remove", c.id, id); err != nil {
			return err
		}
	}
	if err := c.mendSums(); err != nil {
		return err
	}
	if err := c.s.change("mend_held", c.id); err != nil {
		return err
	}
	return c.s.change("mend_bucket", c.id, c.total, c.newest, c.keep)
}
