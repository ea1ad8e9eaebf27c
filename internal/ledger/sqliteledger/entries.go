package sqliteledger

import (
	"context"
	"database/sql"

	"quotabudget/internal/quota"
)

// Entries implements quota.Ledger.
func (l *Ledger) Entries(ctx context.Context, q quota.Query) ([]quota.Entry, error) {
	list, most := "entry_page", -1
	switch {
	case q.Limit > 0:
		list, most = "entry_list", q.Limit
	case q.First > 0:
		most = q.First
	}
	since, until := int64(-quota.Never), int64(quota.Never)
	if !q.Since.IsZero() {
		since = q.Since.UnixMicro()
	}
	if !q.Until.IsZero() {
		until = q.Until.UnixMicro()
	}
	var entries []quota.Entry
	err := l.view(ctx, func(s *session) error {
		entries = nil
		b, err := s.bucket(q.Credential, q.Bucket)
		if err != nil {
			return err
		}
		return s.each(list, []any{b.id, since, until, most}, func(row *sql.Rows) error {
			e, err := b.scanEntry(row)
			entries = append(entries, e)
			return err
		})
	})
	return entries, err
}

func (b *bucket) scanEntry(row *sql.Rows) (e quota.Entry, err error) {
	e.Bucket = b.name
	var at int64
	var labels string
	if err := row.Scan(&at, &e.ID, &e.Units, &e.Total, &labels); err != nil {
		return e, err
	}
	e.At = stamp(at)
	if e.Labels, err = quota.ParseLabels(labels); err != nil {
		return e, b.damaged("the labels of an entry cannot be read")
	}
	return e, nil
}

// Reservations implements quota.Ledger.
func (l *Ledger) Reservations(ctx context.Context, credential, name string) ([]quota.Reservation, error) {
	var list []quota.Reservation
	err := l.view(ctx, func(s *session) error {
		list = nil
		b, err := s.bucket(credential, name)
		if err != nil {
			return err
		}
		return s.each("reservation_list", []any{b.id, moment(s.now(), b)}, func(row *sql.Rows) error {
			r, err := scanReservation(row)
			r.Bucket = name
			list = append(list, r)
			return err
		})
	})
	return list, err
}

func scanReservation(row *sql.Rows) (r quota.Reservation, err error) {
	var created, expires int64
	err = row.Scan(&r.ID, &r.Units, &r.Drawn, &created, &expires, &r.Manual, &r.Note)
	r.Left = r.Units - r.Drawn
	r.CreatedAt, r.ExpiresAt = stamp(created), stamp(expires)
	return r, err
}
