// Package slice lets calls pass while the ledger cannot be reached, without ever spending above a
// limit.
//
// While the ledger answers, each host leases a slice of a credential's units: a reservation that
// counts against every limit and is renewed every few minutes. When the ledger is gone, calls are
// paid from the slice, and each is written to a journal on the local disk before it is allowed.
// When the ledger is back, the journal is posted with its true times, and the slice is filled up.
//
// What all hosts together can spend without the ledger is what they have reserved in it. A host
// that stays away has its slice booked as used when the lease expires (quota.LapseCharge), and
// spends nothing from then on. A monotonic clock measures its absence.
package slice

import (
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
	ttl = 25 * time.Hour
	// renew is how old a lease may be before it is extended: so long a server that came back
	// without its data goes unnoticed.
	renew = 5 * time.Minute
	// margin is how much faster the ledger's clock may go than this host's: so long before a lease
	// expires it is not spent from any more.
	margin = 5 * time.Minute
	retry  = time.Minute // between attempts to bring an account up to date
)

// Slice is the slice of one credential on this host. Its fields are set before the first use. It is
// safe for concurrent use, and other processes may use the same file.
type Slice struct {
	Path   string // of the file; "" where there is no folder for it: then nothing is leased
	Ledger quota.Ledger
	URL    string // of the ledger: another ledger has another slice

	Credential string
	Units      []quota.Cost  // to lease, by bucket
	Limits     []quota.Limit // of these buckets
	Note       string        // of the reservation
	// Closed lets nothing pass on a host that has never leased anything, where calls pass unmetered
	// otherwise.
	Closed bool
	Log    *slog.Logger

	clock   func() moment // for tests; nil is present
	mu      sync.Mutex
	next    time.Time // when to look again whether something is to be done
	reached bool      // the ledger has answered this process
}

var (
	errSpent   = errors.New("the slice leased for that is spent")
	errExpired = errors.New("the lease of the slice for that has expired")
	errBetween = errors.New("there is no slice for that at present")
	errNever   = errors.New("no slice was leased for that: " +
		"this host has not reached the ledger yet")
	errClock = errors.New("the clock of this host is behind " +
		"the time at which the slice was leased")
	errNotLeased = errors.New("no slice is leased for what this call takes")
	errSuspended = errors.New("the upstream has refused it, or a person has suspended it")
	errNoFolder  = errors.New("there is no folder for the slice: set QUOTA_STATE_DIR")
)

func (s *Slice) now() moment {
	if s.clock != nil {
		return s.clock()
	}
	return present()
}

// account is whose rows are ours.
func (s *Slice) account() string {
	sum := sha256.Sum256([]byte(s.URL + "\x00" + s.Credential))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// open opens the file. It is closed after each use: those are rare, and many programs that use it
// run only for a moment.
func (s *Slice) open(ctx context.Context) (*sqlite.DB, error) {
	if s.Path == "" {
		return nil, errNoFolder
	}
	migrations, err := fs.Sub(schemaFiles, "schema")
	if err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, s.Path, sqlite.Schema{Name: "file of leased units",
		ApplicationID: applicationID, Migrations: migrations}, sqlite.Options{})
}

// inFile runs work in one transaction on the file, which it does not make: where there is none, or
// nothing was ever leased, it returns never.
func (s *Slice) inFile(ctx context.Context, work func(*sql.Tx) error) error {
	if _, err := os.Stat(s.Path); s.Path != "" && errors.Is(err, fs.ErrNotExist) {
		return s.never()
	}
	db, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Update(ctx, work)
}

// never says why there is no slice on a host that has none. Once the ledger has answered, nothing
// passes without one.
func (s *Slice) never() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.reached:
		return errBetween
	case s.Closed:
		return errNever
	}
	return quota.ErrNoSlice
}
