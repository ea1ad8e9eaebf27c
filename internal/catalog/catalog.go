// Package catalog keeps charts and videos in SQLite with full-text search.
//
// A chart begins with its first page and receives the others one by one as they are fetched. Once
// it is complete it becomes its region's current chart; until then Current returns the one
// before. Several processes may use one catalogue at once.
//
//	09:00  Begin US, page 1    Current: the chart of 06:00
//	09:00  StorePage 2         Current: the chart of 06:00
//	09:00  exhausted
//	09:10  Resume US           its third page is next
//	09:10  StorePage 3, 4
//	09:10  Complete            Current: the chart of 09:00
package catalog

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"quotabudget/internal/sqlite"
)

// applicationID marks a SQLite file as a catalogue ("qcat").
const applicationID = 0x71636174

// ErrNotFound is returned, perhaps wrapped, by a lookup that finds nothing.
var ErrNotFound = errors.New("not in the catalogue")

//go:embed schema/*.sql
var schemaFiles embed.FS

//go:embed read/*.sql write/*.sql
var queryFiles embed.FS

// Catalog is an open catalogue. It is safe for concurrent use.
type Catalog struct {
	db          *sqlite.DB
	read, write statements
}

// statements holds prepared statements by the names of their files.
type statements map[string]*sql.Stmt

// Open opens the catalogue that url names (see sqlite.ParseURL), and creates it if necessary.
// Errors about the file wrap the sentinels of package sqlite.
//
// A stored page survives a power cut, because fetching it again would cost units again. That
// takes one fsync per page, which is cheap compared to the network.
func Open(ctx context.Context, url string) (*Catalog, error) {
	return openBy(ctx, url, sqlite.Open)
}

// OpenReading opens an existing catalogue for reading only, as sqlite.OpenReading does. The error
// wraps fs.ErrNotExist if there is none.
func OpenReading(ctx context.Context, url string) (*Catalog, error) {
	return openBy(ctx, url, sqlite.OpenReading)
}

type opening func(context.Context, string, sqlite.Schema) (*sqlite.DB, error)

func openBy(ctx context.Context, url string, open opening) (*Catalog, error) {
	file, err := sqlite.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	migrations, err := fs.Sub(schemaFiles, "schema")
	if err != nil {
		return nil, err
	}
	schema := sqlite.Schema{Name: "catalogue", ApplicationID: applicationID, Migrations: migrations}
	db, err := open(ctx, file, schema)
	if err != nil {
		return nil, fmt.Errorf("catalogue %w", err)
	}
	c := &Catalog{db: db}
	if c.read, err = prepare(ctx, db.Read, "read"); err == nil {
		c.write, err = prepare(ctx, db.Write, "write")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("catalogue %w", db.Explain(err)), c.Close())
	}
	return c, nil
}

// Path returns the absolute path of the file.
func (c *Catalog) Path() string { return c.db.Path() }

// Close closes the file.
func (c *Catalog) Close() error { return c.db.Close() }

func prepare(ctx context.Context, db *sql.DB, dir string) (statements, error) {
	files, err := fs.ReadDir(queryFiles, dir)
	if err != nil {
		return nil, err
	}
	prepared := make(statements, len(files))
	for _, file := range files {
		text, err := fs.ReadFile(queryFiles, path.Join(dir, file.Name()))
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(file.Name(), ".sql")
		// The driver treats a statement with a newline after its semicolon as a script, and
		// parses it at each call.
		prepared[name], err = db.PrepareContext(ctx, strings.TrimSpace(string(text)))
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", dir, file.Name(), err)
		}
	}
	return prepared, nil
}

type txn struct {
	ctx  context.Context
	tx   *sql.Tx
	stmt statements
	// texts are indexed at the end of the transaction. A statement on another table in between
	// would make SQLite flush the index, which took half of the time.
	texts []text
}

// update runs fn in a write transaction.
func (c *Catalog) update(ctx context.Context, fn func(*txn) error) error {
	return c.run(ctx, c.db.Update, c.write, fn)
}

// view runs fn in a read transaction.
func (c *Catalog) view(ctx context.Context, fn func(*txn) error) error {
	return c.run(ctx, c.db.View, c.read, fn)
}

func (c *Catalog) run(ctx context.Context, begin func(context.Context, func(*sql.Tx) error) error,
	stmt statements, fn func(*txn) error) error {
	return begin(ctx, func(tx *sql.Tx) error {
		if err := c.db.Still(); err != nil {
			return err
		}
		s := &txn{ctx: ctx, tx: tx, stmt: stmt}
		if err := fn(s); err != nil {
			return err
		}
		return s.index()
	})
}

// exec runs one statement in a transaction.
func (c *Catalog) exec(ctx context.Context, name string, args ...any) error {
	return c.update(ctx, func(s *txn) error { return s.exec(name, args...) })
}

func (s *txn) exec(name string, args ...any) error {
	_, err := s.affect(name, args...)
	return err
}

// affect is like exec, and returns the number of rows changed.
func (s *txn) affect(name string, args ...any) (rows int64, err error) {
	result, err := s.tx.StmtContext(s.ctx, s.stmt[name]).ExecContext(s.ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (s *txn) row(name string, args ...any) *sql.Row {
	return s.tx.StmtContext(s.ctx, s.stmt[name]).QueryRowContext(s.ctx, args...)
}

func (s *txn) each(name string, scan func(scanner) error, args ...any) error {
	rows, err := s.tx.StmtContext(s.ctx, s.stmt[name]).QueryContext(s.ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

type scanner interface{ Scan(dest ...any) error }

// list returns the rows of a query.
func list[T any](s *txn, name string, scan func(scanner) (T, error), args ...any) (all []T,
	err error) {
	err = s.each(name, func(row scanner) error {
		v, err := scan(row)
		all = append(all, v)
		return err
	}, args...)
	return all, err
}

// stamp scans Unix microseconds into a time; NULL is the zero time.
type stamp struct{ at *time.Time }

// Scan implements sql.Scanner.
func (s stamp) Scan(value any) error {
	*s.at = time.Time{}
	if micros, ok := value.(int64); ok {
		*s.at = time.UnixMicro(micros).UTC()
	}
	return nil
}
