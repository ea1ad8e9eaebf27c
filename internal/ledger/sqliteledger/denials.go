package sqliteledger

import (
	"context"
	"database/sql"
	"time"

	"quotabudget/internal/quota"
)

// addDenials adds rows, and drops old ones. New rows of a day that is full lose their labels.
func (l *Ledger) addDenials(ctx context.Context, credential string, denials []quota.Denial) error {
	return l.update(ctx, func(s *session) error {
		s.change("denial_trim", credential, s.now()-quota.DenialTime.Microseconds())
		for _, d := range denials {
			var rows int64
			s.find("denial_rows", []any{credential,
				d.Hour.Truncate(24 * time.Hour).UnixMicro()}, &rows)
			if rows >= quota.MaxDenials {
				d.Labels = nil
			}
			s.change("denial_add", credential, d.Hour.UnixMicro(), d.Bucket, d.Limit,
				d.Labels.Encode(), d.Count, d.Units, d.LastAt.UnixMicro())
		}
		return nil
	})
}

// Denials implements quota.Ledger.
func (l *Ledger) Denials(ctx context.Context, credential string, since time.Time) (
	all []quota.Denial, err error) {
	err = l.view(ctx, func(s *session) {
		all = nil
		s.each("denial_list", []any{credential, micros(since, 0)}, func(rows *sql.Rows) error {
			var hour, last int64
			var labels string
			var d quota.Denial
			err := rows.Scan(&hour, &d.Bucket, &d.Limit, &labels, &d.Count, &d.Units, &last)
			if err != nil {
				return err
			}
			d.Hour, d.LastAt = stamp(hour), stamp(last)
			if d.Labels, err = quota.ParseLabels(labels); err == nil { // else it is left out
				all = append(all, d)
			}
			return nil
		})
	})
	quota.SortDenials(all)
	return all, err
}
