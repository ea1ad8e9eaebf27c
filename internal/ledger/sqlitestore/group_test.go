package sqlitestore_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"quotabudget/internal/ledger/sqlitestore"
	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

// lock takes the file's write lock as another process would; the function returned lets go.
func lock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	migrations, err := fs.Sub(sqlitestore.Schemas, "schema")
	must(t, err)
	db, err := sqlite.Open(context.Background(), path, sqlite.Schema{
		Name: "ledger", ApplicationID: sqlitestore.ApplicationID, Migrations: migrations,
	})
	must(t, err)
	tx, err := db.Write.BeginTx(context.Background(), nil)
	must(t, err)
	return func() {
		tx.Rollback()
		db.Close()
	}
}

func TestCallerMayLeaveTheQueue(t *testing.T) {
	path := file(t)
	l := openEnv(t, path)
	unlock := lock(t, path)
	charge := func(ctx context.Context) chan error {
		answer := make(chan error, 1)
		go func() { answer <- l.charge(ctx) }()
		return answer
	}
	leaderCtx, leaderLeaves := context.WithCancel(t.Context())
	followerCtx, followerLeaves := context.WithCancel(t.Context())
	leads := charge(leaderCtx)
	l.queued(1)
	follows := charge(followerCtx)
	l.queued(2)
	stays := charge(t.Context())
	l.queued(3)

	followerLeaves()
	if err := <-follows; !errors.Is(err, context.Canceled) {
		t.Errorf("follower: %v", err)
	}
	leaderLeaves()
	if err := <-leads; !errors.Is(err, context.Canceled) {
		t.Errorf("leader: %v", err)
	}
	unlock()
	if err := <-stays; err != nil {
		t.Errorf("the one that stayed: %v", err)
	}
	entries(t, l, 1) // that of the one that stayed
}

// together queues the changes in order while the file is locked, so that they are one group, and
// returns their errors.
func together(t *testing.T, l *env, changes ...func() error) []error {
	t.Helper()
	unlock := lock(t, l.path)
	errs := make([]error, len(changes))
	var wg sync.WaitGroup
	for i, change := range changes {
		wg.Go(func() { errs[i] = change() })
		l.queued(i + 1)
	}
	unlock()
	wg.Wait()
	return errs
}

// TestTotalsInAGroup: a change sees the totals that an earlier change of its transaction has
// lowered.
func TestTotalsInAGroup(t *testing.T) {
	l, now := clocked(t)
	old := aCharge(50, day(100))
	d, err := l.Charge(t.Context(), old)
	must(t, err)
	*now = now.Add(30 * time.Hour)
	mustCharge(t, l, 60, day(100))
	var before, after quota.Decision
	errs := together(t, l, func() (err error) {
		before, err = l.Charge(t.Context(), aCharge(41, day(100)))
		return err
	}, func() error {
		return l.Cancel(t.Context(), old, d)
	}, func() (err error) {
		after, err = l.Charge(t.Context(), aCharge(41, day(100)))
		return err
	})
	must(t, errors.Join(errs...))
	if before.Allowed || after.Allowed {
		t.Errorf("41 fit beside 60 of 100: %+v, %+v", before, after)
	}
}

func TestOneErrorDoesNotSpoilTheGroup(t *testing.T) {
	wrong := errors.New("changed its mind")
	for name, bad := range map[string]func(func(string, ...any)) error{
		"of SQLite": func(change func(string, ...any)) error {
			change("entry_add", "key1", "default", 1, nil, 1, 1, "")
			return nil
		},
		"without trace": func(func(string, ...any)) error { return wrong },
	} {
		t.Run(name, func(t *testing.T) {
			l := openEnv(t, file(t))
			charge := func() error { return l.charge(t.Context()) }
			errs := together(t, l, charge,
				func() error { return l.store.BadChange(t.Context(), bad) }, charge)
			if errs[0] != nil || errs[2] != nil {
				t.Errorf("the others: %v, %v", errs[0], errs[2])
			}
			if errs[1] == nil {
				t.Error("the bad one has no error")
			}
			entries(t, l, 2)
			sound(t, l)
		})
	}
}

func TestPanicIsItsOwnCallers(t *testing.T) {
	l := openEnv(t, file(t))
	var recovered any
	errs := together(t, l,
		func() error { return l.charge(t.Context()) },
		func() error {
			defer func() { recovered = recover() }()
			return l.store.BadChange(t.Context(), func(func(string, ...any)) error {
				panic("a mistake")
			})
		})
	if recovered != "a mistake" || errs[0] != nil || len(log(t, l)) != 1 {
		t.Errorf("recovered %v, %v, %d entries", recovered, errs[0], len(log(t, l)))
	}
}

func TestLockedTooLong(t *testing.T) {
	path := file(t)
	synctest.Test(t, func(t *testing.T) {
		l, err := openAt(t.Context(), path)
		must(t, err)
		defer l.Close()
		defer lock(t, path)()
		begun := time.Now()
		if err := l.charge(t.Context()); !errors.Is(err, quota.ErrUnreachable) ||
			!strings.Contains(err.Error(), "another process") {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(begun); waited < sqlite.BusyTimeout || waited > sqlite.BusyTimeout+time.Second {
			t.Errorf("waited %v", waited)
		}
		if _, err := l.Usage(t.Context(), "key1", day(10)); err != nil {
			t.Errorf("reading waits for nobody: %v", err)
		}
	})
}

// A connection that stays open keeps its locks, and the log is not folded into the file.
func TestCloseLetsGoOfTheFile(t *testing.T) {
	path := file(t)
	l := openEnv(t, path)
	must(t, l.charge(t.Context()))
	must(t, l.Close())
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the log is still there: %v", err)
	}
}

func TestCloseWaitsForTheQueue(t *testing.T) {
	path := file(t)
	l := openEnv(t, path)
	unlock := lock(t, path)
	errs := make(chan error, 3)
	for i := range cap(errs) {
		go func() { errs <- l.charge(context.Background()) }()
		l.queued(i + 1)
	}
	closed := make(chan error)
	go func() { closed <- l.Close() }()
	for shut := false; !shut; runtime.Gosched() { // until Close has begun
		_, shut = l.store.Waiting()
	}
	if err := l.charge(t.Context()); !errors.Is(err, quota.ErrUnreachable) {
		t.Errorf("after Close: %v", err)
	}
	unlock()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Errorf("queued: %v", err)
		}
	}
	entries(t, openEnv(t, path), cap(errs))
}

func TestCommitsReachTheDisk(t *testing.T) {
	l := openEnv(t, file(t))
	var synchronous int
	var journal string
	row := l.store.Conn().QueryRowContext(t.Context(),
		"SELECT synchronous, journal_mode FROM pragma_synchronous, pragma_journal_mode")
	if err := row.Scan(&synchronous, &journal); err != nil || synchronous != 2 || journal != "wal" {
		t.Errorf("synchronous %d, journal %s, %v: want 2 (full) and wal", synchronous, journal, err)
	}
}
