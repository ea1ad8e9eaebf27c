package sqlitestore

import (
	"context"
	"database/sql"
	"time"

	"quotabudget/internal/quota"
)

// AddDenials implements ledger.Store. It deletes old rows. New rows of a full day lose their
// labels.
func (s *Store) AddDenials(ctx context.Context, credential string, denials []quota.Denial) error {
	return s.update(ctx, func(t *tx) error {
		t.change("denial_trim", credential, quota.ForgetDenials(denials).UnixMicro())
		for _, d := range denials {
			var rows int64
			t.find("denial_rows", []any{credential,
				d.Hour.Truncate(24 * time.Hour).UnixMicro()}, &rows)
			if rows >= quota.MaxDenials {
				d.Labels = nil
			}
			t.change("denial_add", credential, d.Hour.UnixMicro(), d.Bucket, d.Limit,
				d.Labels.Encode(), d.Count, d.Units, d.LastAt.UnixMicro())
		}
		return t.broken
	})
}

// Denials implements ledger.Store.
func (s *Store) Denials(ctx context.Context, credential string, since time.Time) (
	all []quota.Denial, err error) {
	err = s.view(ctx, func(t *tx) error {
		all = nil
		from, _ := quota.Query{Since: since}.Span()
		t.each("denial_list", []any{credential, from}, func(rows *sql.Rows) error {
			var hour, last int64
			var labels string
			var d quota.Denial
			err := rows.Scan(&hour, &d.Bucket, &d.Limit, &labels, &d.Count, &d.Units, &last)
			if err != nil {
				return err
			}
			d.Hour, d.LastAt = quota.StampTime(hour), quota.StampTime(last)
			if d.Labels, err = quota.ParseLabels(labels); err == nil { // else it is left out
				all = append(all, d)
			}
			return nil
		})
		return t.broken
	})
	quota.SortDenials(all)
	return all, err
}
