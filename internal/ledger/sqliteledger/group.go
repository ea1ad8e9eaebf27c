package sqliteledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"runtime"

	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

const (
	maxGroup = 256 // operations in one transaction
	patience = sqlite.DefaultBusyTimeout
)

// update has do run in a transaction and returns when that was committed, or when nothing of it
// was. A caller whose ctx ends before its operation has begun gets ctx's error and nothing was
// decided; after that it waits for its answer.
func (l *Ledger) update(ctx context.Context, do func(*session) error) error {
	return l.run(ctx, &operation{do: do})
}

func (l *Ledger) run(ctx context.Context, o *operation) error {
	if err := ctx.Err(); err != nil {
		return inWords(err)
	}
	o.wake = make(chan struct{}, 1)
	leads, err := l.queue.join(o)
	if err != nil {
		return err
	}
	for {
		if leads {
			l.lead(ctx, o)
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			if l.queue.leave(o) {
				return inWords(ctx.Err())
			}
			<-o.wake
		}
		if leads = o.state == leader; leads {
			continue
		}
		if o.panicked != nil {
			panic(o.panicked)
		}
		return o.err
	}
}

// lead runs one transaction with the operations that are queued and those that come while it runs.
// own is the leader's, the first of them.
func (l *Ledger) lead(ctx context.Context, own *operation) {
	runtime.Gosched() // who is about to ask joins the group
	if err := l.begin(ctx); err != nil {
		l.notBegun(ctx, own, err)
		return
	}
	s := l.writer()
	l.kept.since(l.version(s))
	var group []*operation
	for len(group) < maxGroup {
		o := l.queue.next()
		if o == nil {
			break
		}
		o.run(s)
		if s.broken != nil || o.err != nil && s.wrote {
			// Its own fault, not the group's: the others are decided again.
			l.rollback()
			l.queue.finish(group, []*operation{o})
			return
		}
		group = append(group, o)
	}
	s.write()
	err := s.broken
	if err == nil {
		err = l.commit()
	} else {
		l.rollback()
	}
	if err != nil {
		for _, o := range group {
			o.err = err
		}
	}
	l.queue.finish(nil, group)
}

// notBegun answers when there is no transaction: the leader alone if it was its ctx that ended,
// otherwise everybody.
func (l *Ledger) notBegun(ctx context.Context, own *operation, err error) {
	if ctx.Err() != nil {
		l.queue.leave(own)
		own.err = err
		own.state = answered
		own.wake <- struct{}{}
		return
	}
	refused := l.queue.all()
	for _, o := range refused {
		o.err = err
	}
	l.queue.finish(nil, refused)
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

// begin waits for the write lock of the file.
func (l *Ledger) begin(ctx context.Context) error {
	err := l.db.Lock(ctx, func() error {
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
		}
		return err
	case errors.Is(err, sqlite.ErrBusy):
		return fmt.Errorf("%w: another process has kept it locked for %s: %w",
			quota.ErrUnreachable, patience, err)
	case ctx.Err() != nil:
		return inWords(ctx.Err())
	}
	return inWords(err)
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
