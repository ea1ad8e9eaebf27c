package report

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"

	"quotabudget/internal/catalog"
	"quotabudget/internal/config"
	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// PageMethod is what a page of a chart is charged as.
const PageMethod = "youtube.videos.list"

// Source is what reports are made from.
type Source struct {
	Config *config.Config
	Ledger quota.Ledger
}

// budget is that of a credential.
func (s Source) budget(c config.Credential) *quota.Budget {
	return c.Budget(s.Ledger, s.Config.Table(c), slog.New(slog.DiscardHandler))
}

// Regions are the configured ones.
func (s Source) Regions() []string {
	names := make([]string, len(s.Config.Ingest.Regions))
	for i, r := range s.Config.Ingest.Regions {
		names[i] = string(r)
	}
	return names
}

// Lanes are those of the configured jobs, with the pages that the catalogue says a run will want.
func (s Source) Lanes(ctx context.Context) ([]share.Lane, error) {
	lanes, err := s.Config.Lanes()
	if err != nil {
		return nil, err
	}
	c, err := catalog.OpenReading(ctx, s.Config.Catalog)
	if errors.Is(err, fs.ErrNotExist) {
		return lanes, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range lanes {
		l := &lanes[i]
		if l.Pages, err = c.PagesWanted(ctx, l.Region, l.Pages); err != nil {
			break
		}
	}
	return lanes, errors.Join(err, c.Close())
}
