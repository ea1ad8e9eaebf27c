package sqliteledger

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"quotabudget/internal/quota"
)

// Sums implements quota.Ledger.
func (l *Ledger) Sums(ctx context.Context, q quota.SumQuery) ([]quota.Sum, error) {
	since := int64(-quota.Never)
	if !q.Since.IsZero() {
		since = q.Since.UnixMicro()
	}
	var sums []quota.Sum
	err := l.view(ctx, func(s *session) error {
		sums = nil
		lines := make(map[string]quota.Labels)
		b, err := s.bucket(q.Credential, q.Bucket)
		if err != nil {
			return err
		}
		return s.each("sum_list", []any{b.id, since}, func(row *sql.Rows) error {
			sum, err := b.scanSum(row, lines)
			sums = append(sums, sum)
			return err
		})
	})
	return sums, err
}

// scanSum reads a row. lines are the lines of labels that were read before.
func (b *bucket) scanSum(row *sql.Rows, lines map[string]quota.Labels) (sum quota.Sum, err error) {
	var at int64
	var line string
	if err := row.Scan(&at, &line, &sum.Units, &sum.Charges); err != nil {
		return sum, err
	}
	labels, known := lines[line]
	if !known {
		if labels, err = quota.ParseLabels(line); err != nil {
			return sum, b.damaged("the labels of a sum cannot be read")
		}
		lines[line] = labels
	}
	sum.At, sum.Labels = stamp(at), labels
	return sum, nil
}

// Between implements quota.Ledger.
func (l *Ledger) Between(
	ctx context.Context,
	credential, name string,
	from, to time.Time,
) (units int64, err error) {
	err = l.view(ctx, func(s *session) error {
		b, err := s.bucket(credential, name)
		if err != nil {
			return err
		}
		_, err = s.find("sum_between", []any{b.id, from.UnixMicro(), to.UnixMicro()}, &units)
		return err
	})
	return units, err
}

// trim forgets the oldest entries, a bounded number of them, once a thirty-second part of their
// time has piled up.
func (b *bucket) trim(n int64) error {
	if !b.oldest.Valid || b.oldest.Int64 > n-b.retention-b.retention/32 {
		return nil
	}
	return b.s.change("entry_trim", b.id, n-b.retention, trimEntries)
}

// checkSums holds the sums against what the entries must be.
func (c *checked) checkSums() error {
	for i, line := range c.becomes {
		if line.Units > 0 && !line.Left {
			c.sums.Add(line.At, withoutRun(c.labels(i)), line.Units, 1)
		}
	}
	var kept quota.Tally
	err := c.s.each("sum_list", []any{c.id, int64(-quota.Never)}, func(row *sql.Rows) error {
		var at, units, charges int64
		var labels string
		err := row.Scan(&at, &labels, &units, &charges)
		kept.Add(at, labels, units, charges)
		return err
	})
	if f, differ := c.sums.Differs(kept); differ && !c.mends() { // a repair writes the sums anyway
		c.findings = append(c.findings, f)
	}
	return err
}

// mendSums writes the sums anew.
func (c *checked) mendSums() error {
	if err := c.s.change("sum_clear", c.id); err != nil {
		return err
	}
	return c.sums.Each(func(at int64, labels string, units, charges int64) error {
		return c.s.change("sum_add", c.id, at, labels, units, charges)
	})
}

// withoutRun cuts the run out of a line of labels.
func withoutRun(line string) string {
	const run = quota.LabelRun + "="
	before, after := "", line
	if !strings.HasPrefix(line, run) {
		var found bool
		if before, after, found = strings.Cut(line, "&"+run); !found {
			return line
		}
	}
	_, rest, more := strings.Cut(after, "&")
	switch {
	case !more:
		return before
	case before == "":
		return rest
	}
	return before + "&" + rest
}
