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

// prepare prepares every statement of sql/ on one handle, so that a typo in any of them is an error
// of Open.
func prepare(ctx context.Context, on preparer) (statements, error) {
	texts, err := readStatements(sqlFiles)
	if err != nil {
		return nil, err
	}
	prepared := make(statements, len(texts))
	for name, text := range texts {
		stmt, err := on.PrepareContext(ctx, text)
		if err != nil {
			return prepared, fmt.Errorf("statement %s: %w", name, err)
		}
		prepared[name] = stmt
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

// readStatements reads the statements of the files by name. Nothing may follow a statement, or the
// driver would parse it at each use.
func readStatements(files fs.FS) (map[string]string, error) {
	names, err := fs.Glob(files, "sql/*.sql")
	if err != nil {
		return nil, err
	}
	texts := make(map[string]string)
	for _, file := range names {
		content, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, err
		}
		for _, part := range strings.Split(string(content), "-- name: ")[1:] {
			name, rest, _ := strings.Cut(part, "\n")
			text, _, ended := strings.Cut(rest, ";")
			if _, twice := texts[name]; twice || !ended {
				return nil, fmt.Errorf("%s: statement %q: no end, or name used twice", file, name)
			}
			texts[name] = strings.TrimSpace(text)
		}
	}
	return texts, nil
}
