package sqlitestore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// The statements are in sql/*.sql: a comment, a line "-- name: x", the statement.
//
//go:embed sql/*.sql
var sqlFiles embed.FS

// preparer is a *sql.Conn or a *sql.DB.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// statements are the prepared statements by name.
type statements map[string]*sql.Stmt

// prepare prepares every statement of sql/ on one handle, so that Open reports a typo in any.
func prepare(ctx context.Context, on preparer) (statements, error) {
	names, err := fs.Glob(sqlFiles, "sql/*.sql")
	if err != nil {
		return nil, err
	}
	prepared := make(statements)
	for _, file := range names {
		content, err := sqlFiles.ReadFile(file)
		if err != nil {
			return prepared, err
		}
		for _, part := range strings.Split(string(content), "-- name: ")[1:] {
			name, rest, _ := strings.Cut(part, "\n")
			text, _, ended := strings.Cut(rest, ";") // the driver would parse the rest at each use
			if prepared[name] != nil || !ended {
				return prepared, fmt.Errorf("%s: statement %q: no end, or name used twice", file, name)
			}
			stmt, err := on.PrepareContext(ctx, strings.TrimSpace(text))
			if err != nil {
				return prepared, fmt.Errorf("statement %s: %w", name, err)
			}
			prepared[name] = stmt
		}
	}
	return prepared, nil
}

// close closes statements that were prepared on a *sql.Conn. A connection with open statements
// stays open, with its locks.
func (s statements) close() (err error) {
	for _, stmt := range s {
		err = errors.Join(err, stmt.Close())
	}
	return err
}
