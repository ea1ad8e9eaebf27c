package sqliteledger

import (
	"context"
	"database/sql"
	"time"

	"quotabudget/internal/quota"
)

// Sums implements quota.Ledger.
func (l *Ledger) Sums(ctx context.Context, q quota.SumQuery) (sums []quota.Sum, err error) {
	err = l.view(ctx, func(s *session) {
		b, _ := s.lookAt(q.Credential, q.Bucket, s.now())
		lines := make(map[string]quota.Labels)
		b.sums(micros(q.Since, -quota.Never), func(at int64, line string, units, charges int64) {
			if lines[line] == nil {
				lines[line] = b.labels(line)
			}
			sum := quota.Sum{At: stamp(at), Labels: lines[line], Units: units, Charges: charges}
			sums = append(sums, sum)
		})
	})
	return sums, err
}

// sums reads the sums of the grains from a time on.
func (b *bucket) sums(since int64, do func(at int64, labels string, units, charges int64)) {
	b.s.each("sum_list", []any{b.id, since}, func(row *sql.Rows) error {
		var at, units, charges int64
		var line string
		err := row.Scan(&at, &line, &units, &charges)
		do(at, line, units, charges)
		return err
	})
}

// Between implements quota.Ledger.
func (l *Ledger) Between(ctx context.Context, credential, name string, from, to time.Time) (
	units int64, err error) {
	err = l.view(ctx, func(s *session) {
		b, _ := s.lookAt(credential, name, s.now())
		s.find("sum_between", []any{b.id, from.UnixMicro(), to.UnixMicro()}, &units)
	})
	return units, err
}
