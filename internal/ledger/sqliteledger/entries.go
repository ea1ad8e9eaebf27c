package sqliteledger

import (
	"context"
	"database/sql"
	"time"

	"quotabudget/internal/quota"
)

// micros is a time as it is stored, and otherwise when there is none.
func micros(t time.Time, otherwise int64) int64 {
	if t.IsZero() {
		return otherwise
	}
	return t.UnixMicro()
}

// Entries implements quota.Ledger.
func (l *Ledger) Entries(ctx context.Context, q quota.Query) (entries []quota.Entry, err error) {
	list, most := "entry_page", -1
	switch {
	case q.Limit > 0:
		list, most = "entry_list", q.Limit
	case q.First > 0:
		most = q.First
	}
	err = l.view(ctx, func(s *session) {
		b, _ := s.lookAt(q.Credential, q.Bucket, s.now())
		args := []any{b.id, micros(q.Since, -quota.Never), micros(q.Until, quota.Never), most}
		s.each(list, args, func(row *sql.Rows) error {
			e := quota.Entry{Bucket: b.name}
			var at int64
			var labels string
			err := row.Scan(&at, &e.ID, &e.Units, &e.Total, &labels)
			e.At, e.Labels = stamp(at), b.labels(labels)
			entries = append(entries, e)
			return err
		})
	})
	return entries, err
}

// labels reads the labels of an entry or of a sum.
func (b *bucket) labels(line string) quota.Labels {
	labels, err := quota.ParseLabels(line)
	if err != nil {
		b.damaged("the labels of an entry cannot be read")
	}
	return labels
}

// Reservations implements quota.Ledger.
func (l *Ledger) Reservations(ctx context.Context, credential, name string) (
	list []quota.Reservation, err error) {
	err = l.view(ctx, func(s *session) {
		b, n := s.lookAt(credential, name, s.now())
		s.each("reservation_list", []any{b.id, n}, func(row *sql.Rows) error {
			r := quota.Reservation{Bucket: name, Lapse: quota.LapseRelease}
			var created, ends int64
			var charged bool
			err := row.Scan(&r.ID, &r.Units, &r.Most, &r.Drawn, &created, &ends, &charged,
				&r.Manual, &r.Note)
			if charged {
				r.Lapse = quota.LapseCharge
			}
			r.Most, r.Left = max(r.Units, r.Most), r.Units-r.Drawn
			r.CreatedAt, r.ExpiresAt = stamp(created), stamp(ends)
			list = append(list, r)
			return err
		})
	})
	return list, err
}
