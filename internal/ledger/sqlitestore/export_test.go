package sqlitestore

import (
	"context"
	"database/sql"
)

// ApplicationID and Migrations are for opening the file beside a store.
const ApplicationID = applicationID

var Schemas = schemaFiles

// InWords is for tests of its words.
var InWords = inWords

// Waiting returns how many callers wait, and whether the store is closed.
func (s *Store) Waiting() (waiting int, closed bool) { return s.queue.State() }

// Conn returns the connection that writes.
func (s *Store) Conn() *sql.Conn { return s.conn }

// BadChange has a change fail: in SQLite, at the commit, or in what decides it.
func (s *Store) BadChange(ctx context.Context,
	spoil func(change func(statement string, args ...any)) error) error {
	return s.update(ctx, func(t *tx) error {
		err := spoil(t.change)
		if err == nil {
			err = t.broken
		}
		return err
	})
}
