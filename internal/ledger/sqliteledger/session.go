package sqliteledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"quotabudget/internal/quota"
)

// session runs the statements of sql/ inside one transaction.
type session struct {
	ctx     context.Context
	stmt    func(name string) *sql.Stmt
	clock   func() time.Time
	explain func(error) error

	wrote  bool  // by the operation at hand
	broken error // the first error of SQLite: the transaction must not be committed
}

// now is the time of the ledger's clock in Unix microseconds. It is read while the lock is held,
// for each operation.
func (s *session) now() int64 { return s.clock().UnixMicro() }

// find reads the first row of what a statement answers; found is false when there is none.
func (s *session) find(name string, args []any, into ...any) (found bool, err error) {
	err = s.stmt(name).QueryRowContext(s.ctx, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, s.note(name, err)
}

// each reads all rows of what a statement answers; row scans one, and may
// say errEnough.
func (s *session) each(name string, args []any, row func(*sql.Rows) error) error {
	rows, err := s.stmt(name).QueryContext(s.ctx, args...)
	if err != nil {
		return s.note(name, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return s.note(name, err)
		}
	}
	return s.note(name, rows.Err())
}

// change runs a statement that writes.
func (s *session) change(name string, args ...any) error {
	s.wrote = true
	_, err := s.stmt(name).ExecContext(s.ctx, args...)
	return s.note(name, err)
}

// note keeps the first error and puts it into the words of the contract.
func (s *session) note(name string, err error) error {
	if err == nil {
		return nil
	}
	if _, damaged := errors.AsType[*quota.DamagedError](err); !damaged {
		err = s.explain(fmt.Errorf("%s: %w", name, err))
	}
	if s.broken == nil {
		s.broken = err
	}
	return err
}
