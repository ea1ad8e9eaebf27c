// Package slice lets calls pass while the ledger cannot be reached, without ever spending above a
// limit.
//
// While the ledger answers, each host leases a slice of a credential's units: a reservation that
// counts against every limit and is renewed once an hour. When the ledger is gone, calls are paid
// from the slice, and each is written to a journal on the local disk before it is allowed. When the
// ledger is back, the journal is posted with its true times, and the slice is filled up.
//
// What all hosts together can spend without the ledger is what they have reserved in it. A host
// that stays away has its slice booked as used when the lease expires (quota.LapseCharge), and
// spends nothing from then on.
package slice

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/base64"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

const applicationID = 0x51534c43 // "QSLC"

const (
	// ttl is how long a host may be away from the ledger and still spend from its slice. Jobs that
	// run once a day find it there.
	ttl   = 25 * time.Hour
	renew = time.Hour // a lease is extended when it is older
	// margin is how much this host's clock may be behind the ledger's: so long before a lease
	// expires it is not spent from any more.
	margin = 5 * time.Minute
	retry  = time.Minute // between attempts to bring an account up to date
)

// Slice is the slice of one credential on this host. Its fields are set before the first use. It is
// safe for concurrent use, and other processes may use the same file.
type Slice struct {
	Path   string // of the file
	Ledger quota.Ledger
	URL    string // of the ledger: another ledger has another slice

	Credential string
	Units      []quota.Cost  // to lease, by bucket
	Limits     []quota.Limit // of these buckets
	Note       string        // of the reservation
	Log        *slog.Logger
	Now        func() time.Time // nil is time.Now

	mu   sync.Mutex
	next time.Time // when to look again whether something is to be done
}

var (
	errSpent   = errors.New("the slice leased for that is spent")
	errExpired = errors.New("the lease of the slice for that has expired")
	errBetween = errors.New("there is no slice for that at present")
)

func (s *Slice) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// account is whose rows are ours.
func (s *Slice) account() string {
	sum := sha256.Sum256([]byte(s.URL + "\x00" + s.Credential))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// open opens the file. It is closed after each use: those are rare, and many programs that use it
// run only for a moment.
func (s *Slice) open(ctx context.Context) (*sqlite.DB, error) {
	migrations, err := fs.Sub(schemaFiles, "schema")
	if err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, s.Path, sqlite.Schema{Name: "file of leased units",
		ApplicationID: applicationID, Migrations: migrations}, sqlite.Options{})
}

// Spend pays a charge from the slice, all or nothing. It returns once that is on the disk. Errors:
// quota.ErrNoSlice where the ledger has never been reached; others when the slice is spent or has
// expired.
func (s *Slice) Spend(ctx context.Context, c quota.Charge) (left map[string]int64, err error) {
	if _, err := os.Stat(s.Path); errors.Is(err, fs.ErrNotExist) {
		return nil, quota.ErrNoSlice
	}
	db, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	s.mu.Lock()
	s.next = time.Time{} // once the ledger is back, the journal is posted at once
	s.mu.Unlock()
	now := s.now()
	err = db.Update(ctx, func(tx *sql.Tx) (err error) {
		left, err = s.spend(ctx, tx, c, now)
		return err
	})
	return left, err
}

func (s *Slice) spend(ctx context.Context, tx *sql.Tx, c quota.Charge, now time.Time) (
	map[string]int64, error) {
	var lease string
	var until int64
	err := tx.QueryRowContext(ctx, `SELECT reservation, expires_at FROM leases
		WHERE account = ? AND usable ORDER BY expires_at DESC LIMIT 1`, s.account()).
		Scan(&lease, &until)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, s.noLease(ctx, tx)
	case err != nil:
		return nil, err
	case now.Add(margin).UnixMicro() > until:
		return nil, errExpired
	}
	left := make(map[string]int64, len(c.Costs))
	for _, cost := range c.Costs {
		var rest int64
		err := tx.QueryRowContext(ctx, `UPDATE parts SET left = left - ?1
			WHERE reservation = ?2 AND bucket = ?3 AND left >= ?1 RETURNING left`,
			cost.Units, lease, cost.Bucket).Scan(&rest)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, errSpent
		}
		if err != nil {
			return nil, err
		}
		left[cost.Bucket] = rest
		_, err = tx.ExecContext(ctx, `INSERT INTO lines (id, bucket, account, units, spent_at,
			labels) VALUES (?, ?, ?, ?, ?, ?)`, c.ID, cost.Bucket, s.account(), cost.Units,
			now.UnixMicro(), c.Labels.Encode())
		if err != nil {
			return nil, err
		}
	}
	return left, nil
}

// noLease says why there is none. Where there once was one, nothing passes.
func (s *Slice) noLease(ctx context.Context, tx *sql.Tx) error {
	var ever int
	err := tx.QueryRowContext(ctx, `SELECT count(*) FROM turns WHERE account = ?`, s.account()).
		Scan(&ever)
	if err == nil && ever == 0 {
		return quota.ErrNoSlice
	}
	return cmp.Or(err, errBetween)
}

// Standing is what is left of the slice, by bucket, and how many calls wait to be recorded.
func (s *Slice) Standing(ctx context.Context) (left map[string]int64, waiting int, err error) {
	if _, err := os.Stat(s.Path); errors.Is(err, fs.ErrNotExist) {
		return nil, 0, quota.ErrNoSlice
	}
	db, err := s.open(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer db.Close()
	lines, _, err := s.standing(ctx, db)
	if err != nil {
		return nil, 0, err
	}
	left = make(map[string]int64)
	err = db.View(ctx, func(tx *sql.Tx) error {
		type part struct {
			bucket string
			units  int64
		}
		parts, err := scan(ctx, tx, func(rows *sql.Rows, p *part) error {
			return rows.Scan(&p.bucket, &p.units)
		}, `SELECT bucket, left FROM parts NATURAL JOIN leases
			WHERE account = ? AND usable AND expires_at > ?`, s.account(),
			s.now().Add(margin).UnixMicro())
		for _, p := range parts {
			left[p.bucket] += p.units
		}
		return err
	})
	return left, len(lines), err
}
