package sqliteledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"quotabudget/internal/quota"
)

// session runs the statements of sql/ inside one transaction. After the first error it runs none
// and finds nothing; that error is the answer, and nothing is committed. So callers look at it only
// where they would go on for long.
type session struct {
	ctx     context.Context
	stmt    func(name string) *sql.Stmt
	clock   func() time.Time
	explain func(error) error

	reads  bool  // and cannot write
	wrote  bool  // by the current operation
	broken error // the first error
	kept   *kept
}

// now is the time of the ledger's clock in Unix microseconds. It is read while the lock is held,
// for each operation.
func (s *session) now() int64 { return s.clock().UnixMicro() }

// find reads the first row of what a statement answers; false when there is none.
func (s *session) find(name string, args []any, into ...any) bool {
	if s.broken != nil {
		return false
	}
	err := s.stmt(name).QueryRowContext(s.ctx, args...).Scan(into...)
	if !errors.Is(err, sql.ErrNoRows) {
		s.fail(name, err)
	}
	return err == nil
}

// errEnough ends the reading of rows.
var errEnough = errors.New("enough")

// each reads all rows of what a statement answers; row scans one, and may say errEnough.
func (s *session) each(name string, args []any, row func(*sql.Rows) error) {
	if s.broken != nil {
		return
	}
	rows, err := s.stmt(name).QueryContext(s.ctx, args...)
	if err != nil {
		s.fail(name, err)
		return
	}
	defer rows.Close()
	for err == nil && s.broken == nil && rows.Next() {
		err = row(rows)
	}
	if err == nil {
		err = rows.Err()
	}
	if !errors.Is(err, errEnough) {
		s.fail(name, err)
	}
}

// change runs a statement that writes.
func (s *session) change(name string, args ...any) {
	if s.broken == nil {
		s.wrote = true
		_, err := s.stmt(name).ExecContext(s.ctx, args...)
		s.fail(name, err)
	}
}

// fail keeps the first error, in the words of the contract.
func (s *session) fail(name string, err error) {
	if err == nil || s.broken != nil {
		return
	}
	if _, damaged := errors.AsType[*quota.DamagedError](err); !damaged {
		err = s.explain(fmt.Errorf("%s: %w", name, err))
	}
	s.broken = err
}
