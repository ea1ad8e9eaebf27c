package sqliteledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"

	"quotabudget/internal/ledger/queue"
	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

const (
	maxGroup = 256 // operations in one transaction
	patience = sqlite.DefaultBusyTimeout
)

// operation is one caller's, in the queue.
type operation = queue.Op[work]

type work struct {
	do       func(*session) error // decides and writes; run again when its transaction was undone
	keeps    bool                 // takes part in what the session keeps
	err      error                // of do, or of the commit
	panicked any                  // what do panicked with; its own caller panics with it
}

// run runs do. A panic is kept for the operation's own caller, and breaks the transaction.
func (w *work) run(s *session) {
	s.broken, s.kept.used = nil, nil
	if s.kept.on = w.keeps; !w.keeps {
		s.forget()
	}
	s.wrote = false
	defer func() {
		if w.panicked = recover(); w.panicked != nil {
			s.broken = fmt.Errorf("panic: %v", w.panicked)
		}
		if s.broken != nil {
			w.err = s.broken
		}
	}()
	if s.broken == nil {
		w.err = w.do(s)
	}
	if w.err == nil && w.keeps {
		s.keep()
	}
}

// update has do run in a transaction and returns when that was committed, or when nothing of it
// was. A caller whose ctx ends before its operation has begun gets ctx's error and nothing was
// decided; after that it waits for its answer.
func (l *Ledger) update(ctx context.Context, do func(*session) error) error {
	return l.run(ctx, work{do: do})
}

func (l *Ledger) run(ctx context.Context, w work) error {
	if err := ctx.Err(); err != nil {
		return inWords(err)
	}
	o := &operation{Work: w}
	err := l.queue.Ask(ctx, o, true, func() { l.lead(ctx, o) })
	switch {
	case errors.Is(err, queue.ErrClosed):
		return fmt.Errorf("%w: %w", quota.ErrUnreachable, err)
	case err != nil:
		return inWords(err)
	case o.Work.panicked != nil:
		panic(o.Work.panicked)
	}
	return o.Work.err
}

// lead runs one transaction with the operations that are queued and those that come while it runs.
// own is the leader's, the first of them.
func (l *Ledger) lead(ctx context.Context, own *operation) {
	runtime.Gosched() // who is about to ask joins the group
	end, err := l.begin(ctx)
	if err != nil {
		l.notBegun(ctx, own, err)
		return
	}
	again, done := l.transact()
	end()
	l.queue.Finish(again, done)
}

// transact does what is queued in the transaction that has begun, and ends it. It returns what is
// to be done again, and what is answered.
func (l *Ledger) transact() (again, done []*operation) {
	s := l.writer()
	l.kept.since(l.version(s))
	for len(done) < maxGroup {
		next := l.queue.Take(1)
		if len(next) == 0 {
			break
		}
		w := &next[0].Work
		w.run(s)
		if s.broken != nil || w.err != nil && s.wrote {
			l.rollback() // its own fault, not the group's: the others are decided again
			return done, next
		}
		done = append(done, next[0])
	}
	s.write()
	err := s.broken
	if err == nil {
		err = l.commit()
	} else {
		l.rollback()
	}
	if err != nil {
		for _, o := range done {
			o.Work.err = err
		}
	}
	return nil, done
}

// notBegun answers when there is no transaction: the leader alone if it was its ctx that ended,
// otherwise everybody.
func (l *Ledger) notBegun(ctx context.Context, own *operation, err error) {
	if ctx.Err() != nil {
		own.Work.err = err
		l.queue.Resign(own)
		return
	}
	refused := l.queue.Take(math.MaxInt)
	for _, o := range refused {
		o.Work.err = err
	}
	l.queue.Finish(nil, refused)
}

func (l *Ledger) writer() *session {
	return &session{
		ctx:     context.Background(), // a caller that leaves must not interrupt the others
		stmt:    func(name string) *sql.Stmt { return l.writing[name] },
		clock:   l.clock,
		explain: l.explain,
		kept:    &l.kept,
	}
}

// still makes sure that the path names the file that was opened: who opens it now must see what is
// decided here.
func (l *Ledger) still() error {
	now, err := os.Stat(l.db.Path())
	if err == nil && os.SameFile(l.file, now) {
		return nil
	}
	return fmt.Errorf("%w: %s was moved, deleted or replaced while it was open",
		quota.ErrLedgerUnusable, l.db.Path())
}

// begin waits for the write lock of the file; end is to be called when the transaction is over.
func (l *Ledger) begin(ctx context.Context) (end func(), err error) {
	end, err = l.db.Lock(ctx, func() error {
		_, err := l.writing["begin"].ExecContext(ctx)
		if err != nil {
			l.rollback() // an interrupted BEGIN may have begun
		}
		return l.db.Explain(err)
	})
	switch {
	case err == nil:
		if err = l.still(); err != nil {
			l.rollback()
			end()
		}
		return end, err
	case errors.Is(err, sqlite.ErrBusy):
		err = fmt.Errorf("%w: another process has kept it locked for %s: %w",
			quota.ErrUnreachable, patience, err)
	case ctx.Err() != nil:
		err = inWords(ctx.Err())
	default:
		err = inWords(err)
	}
	return nil, err
}

// commit makes the group durable. When it reports an error nothing was taken, as far as can be
// known.
func (l *Ledger) commit() error {
	_, err := l.writing["commit"].ExecContext(context.Background())
	if err == nil {
		return nil
	}
	l.rollback()
	err = l.explain(err)
	if errors.Is(err, quota.ErrLedgerUnusable) {
		return err
	}
	return fmt.Errorf("the answer was lost: %w", err)
}

// version is another one once others have changed the file.
func (l *Ledger) version(s *session) (version int64) {
	if !s.find("data_version", nil, &version) {
		l.kept.lose()
	}
	return version
}

// rollback ends the transaction, if there is one: SQLite may have ended it already.
func (l *Ledger) rollback() {
	l.kept.lose()
	_, _ = l.writing["rollback"].ExecContext(context.Background())
}
