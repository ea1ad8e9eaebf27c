package catalog

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"
)

// PutLink stores a short link to a path and returns its slug, the same one for the same path.
func (c *Catalog) PutLink(ctx context.Context, path string, at time.Time) (slug string, err error) {
	sum := sha256.Sum256([]byte(path))
	slug = strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
	return slug, c.exec(ctx, "put_link", slug, path, at.UnixMicro())
}

// Link returns the path of a slug. The error wraps ErrNotFound if there is none.
func (c *Catalog) Link(ctx context.Context, slug string) (path string, err error) {
	err = c.view(ctx, func(s *txn) error { return s.row("link", slug).Scan(&path) })
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("link %q: %w", slug, ErrNotFound)
	}
	return path, err
}
