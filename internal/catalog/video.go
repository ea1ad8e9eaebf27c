package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Video is a video as the upstream describes it. Text is kept byte for byte.
type Video struct {
	ID           string // may begin with "-"
	Title        string
	ChannelID    string
	ChannelTitle string
	Category     string // the upstream's category id
	Description  string
	Duration     string    // ISO 8601; "" if missing
	Tags         []string  // in the original order, repeated and empty ones included
	PublishedAt  time.Time // zero if missing

	// Counters may fall. nil means that the upstream did not report one, which is not 0.
	Views, Likes, Comments *int64
}

// Seen is a video as last seen.
type Seen struct {
	Video
	FirstSeenAt time.Time
	FetchedAt   time.Time // of everything in Video
}

// Names are a video's names from At on.
type Names struct {
	At                                       time.Time
	Title, ChannelID, ChannelTitle, Category string
}

// Counters are a video's counters from At on, nil as in Video.
type Counters struct {
	At                     time.Time
	Views, Likes, Comments *int64
}

// History is a video with its changes, oldest first: one Names and one Counters for its first
// sight and for each change.
type History struct {
	Seen
	Names    []Names
	Counters []Counters
}

// Video returns the video with the upstream's ID. The error wraps ErrNotFound if there is none.
func (c *Catalog) Video(ctx context.Context, id string) (h History, err error) {
	err = c.view(ctx, func(s *txn) error {
		var number int64
		if h.Seen, err = scanSeen(s.row("video", id), &number); err != nil {
			return err
		}
		h.Names, err = list(s, "names", func(row scanner) (n Names, err error) {
			err = row.Scan(stamp{&n.At}, &n.Title, &n.ChannelID, &n.ChannelTitle, &n.Category)
			return n, err
		}, number)
		if err != nil {
			return err
		}
		h.Counters, err = list(s, "counters", func(row scanner) (k Counters, err error) {
			err = row.Scan(stamp{&k.At}, &k.Views, &k.Likes, &k.Comments)
			return k, err
		}, number)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("video %q: %w", id, ErrNotFound)
	}
	return h, err
}

// scanSeen scans the first column into first and a video from the columns after it.
func scanSeen(row scanner, first any) (v Seen, err error) {
	var tags []byte
	err = row.Scan(first, &v.ID, &v.Title, &v.ChannelID, &v.ChannelTitle, &v.Category, &v.Views,
		&v.Likes, &v.Comments, stamp{&v.PublishedAt}, stamp{&v.FirstSeenAt}, stamp{&v.FetchedAt},
		&v.Duration, &tags, &v.Description)
	if err != nil {
		return Seen{}, err
	}
	return v, json.Unmarshal(tags, &v.Tags)
}

// Delete deletes everything fetched before that moment: charts begun before it, videos not
// fetched since, and the other videos' older history except their current state. It returns the
// number of videos deleted. It works in small steps between which others can write. After an
// error the steps done stay done, and Delete may be called again.
func (c *Catalog) Delete(ctx context.Context, before time.Time) (videos int, err error) {
	const step = 200 // rows; a step takes about ten milliseconds
	if _, err := c.deleteAll(ctx, "delete_charts", before.UnixMicro(), step); err != nil {
		return 0, err
	}
	if videos, err = c.deleteAll(ctx, "delete_videos", before.UnixMicro(), step); err != nil {
		return videos, err
	}
	return videos, c.update(ctx, func(s *txn) error {
		if err := s.exec("delete_names", before.UnixMicro()); err != nil {
			return err
		}
		return s.exec("delete_counters", before.UnixMicro())
	})
}

// deleteAll repeats a query that deletes at most step rows until nothing is left to delete.
func (c *Catalog) deleteAll(ctx context.Context, query string, before, step int64) (total int,
	err error) {
	for n := step; n >= step; {
		err := c.update(ctx, func(s *txn) error {
			n, err = s.affect(query, before, step)
			return err
		})
		if err != nil {
			return total, err
		}
		total += int(n)
	}
	return total, nil
}
