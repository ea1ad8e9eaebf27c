package sqliteledger

import (
	"context"
	"database/sql"
	"strconv"
	"sync"
)

// watch is a connection that only asks whether others have written: SQLite counts that for each
// connection by itself. It is made when it is first needed.
type watch struct {
	mu   sync.Mutex
	conn *sql.Conn
}

// Mark implements quota.Ledger: any change of the file is one of the buckets.
func (l *Ledger) Mark(ctx context.Context, _ string, _ []string) (string, error) {
	if err := l.still(); err != nil {
		return "", err
	}
	l.watch.mu.Lock()
	defer l.watch.mu.Unlock()
	var err error
	if l.watch.conn == nil {
		if l.watch.conn, err = l.db.Read.Conn(ctx); err != nil {
			return "", l.explain(err)
		}
	}
	var version int64
	err = l.watch.conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version)
	return strconv.FormatInt(version, 10), l.explain(err)
}

func (w *watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil {
		w.conn.Close() // it has read, and nothing is lost with it
	}
}
