package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

const maxGroup = 256 // operations in one transaction

// operation is a queued operation of one caller.
type operation = quota.Queued[work]

type work struct {
	do       func(*tx) error // runs again after a rollback
	err      error           // from do or the commit
	panicked any             // the value of a panic in do, for its own caller
}

// run runs do. It stores a panic for the operation's own caller.
func (w *work) run(t *tx) {
	defer func() {
		if w.panicked = recover(); w.panicked != nil {
			t.fail(fmt.Errorf("panic: %v", w.panicked))
			w.err = t.broken
		}
	}()
	w.err = w.do(t)
	if t.broken != nil {
		w.err = t.broken
	}
}

// Update implements ledger.Store. If ctx ends before the change begins, Update returns its error
// and nothing is decided. Otherwise Update waits for the answer.
func (s *Store) Update(ctx context.Context, scope quota.Scope,
	decide func(*quota.Account) (quota.Change, error)) error {
	return s.update(ctx, func(t *tx) error {
		a, err := t.account(scope)
		if err != nil {
			return err
		}
		ch, err := decide(a)
		if err != nil {
			return err
		}
		t.write(scope, ch)
		return t.broken
	})
}

// update runs do in a transaction, and returns after its commit or rollback.
func (s *Store) update(ctx context.Context, do func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return inWords(err)
	}
	o := &operation{Work: work{do: do}}
	err := s.queue.Ask(ctx, o, true, s.work)
	switch {
	case errors.Is(err, quota.ErrQueueClosed):
		return fmt.Errorf("%w: %w", quota.ErrUnreachable, err)
	case err != nil:
		return inWords(err)
	case o.Work.panicked != nil:
		panic(o.Work.panicked)
	}
	return o.Work.err
}

// work runs one transaction with the operations that are queued or arrive meanwhile. It waits for
// the file as long as the first caller does.
func (s *Store) work() {
	first := s.queue.First()
	if first == nil {
		return
	}
	end, err := s.begin(first.Context())
	switch {
	case err == nil:
		again, done := s.transact()
		end()
		s.queue.Answer(done, again...)
	case first.Context().Err() == nil:
		refused := s.queue.Take(math.MaxInt)
		for _, o := range refused {
			o.Work.err = err
		}
		s.queue.Answer(refused)
	}
}

// transact runs the queued operations in the open transaction and ends it. It returns the
// operations to repeat, and the finished ones.
func (s *Store) transact() (again, done []*operation) {
	// a caller that gives up must not interrupt the others
	t := s.newTx(context.Background(), func(name string) *sql.Stmt { return s.writing[name] })
	for len(done) < maxGroup {
		next := s.queue.Take(1)
		if len(next) == 0 {
			break
		}
		next[0].Work.run(t)
		if t.broken != nil {
			s.rollback() // only this operation failed: repeat the others
			return done, next
		}
		done = append(done, next[0])
	}
	t.flush()
	err := t.broken
	if err == nil {
		err = s.commit()
	} else {
		s.rollback()
	}
	if err != nil {
		for _, o := range done {
			o.Work.err = err
		}
	}
	return nil, done
}

// begin waits for the write lock of the file. The caller calls end after the transaction.
func (s *Store) begin(ctx context.Context) (end func(), err error) {
	end, err = s.db.Lock(ctx, func() error {
		_, err := s.writing["begin"].ExecContext(ctx)
		if err != nil {
			s.rollback() // an interrupted BEGIN may have taken effect
		}
		return s.db.Explain(err)
	})
	switch {
	case err == nil:
		if err = s.still(); err != nil {
			s.rollback()
			end()
		}
		return end, err
	case errors.Is(err, sqlite.ErrBusy):
		err = fmt.Errorf("%w: another process has kept it locked for %s: %w",
			quota.ErrUnreachable, sqlite.BusyTimeout, err)
	case ctx.Err() != nil:
		err = inWords(ctx.Err())
	default:
		err = inWords(err)
	}
	return nil, err
}

// commit makes the group durable. After an error, as far as it can tell, nothing was written.
func (s *Store) commit() error {
	_, err := s.writing["commit"].ExecContext(context.Background())
	if err == nil {
		return nil
	}
	s.rollback()
	err = s.explain(err)
	if errors.Is(err, quota.ErrLedgerUnusable) {
		return err
	}
	return fmt.Errorf("the answer was lost: %w", err)
}

// rollback ends the transaction, unless SQLite has ended it already.
func (s *Store) rollback() {
	_, _ = s.writing["rollback"].ExecContext(context.Background())
}
