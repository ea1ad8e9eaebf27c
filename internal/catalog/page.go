package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Page is one response of the upstream.
type Page struct {
	// Token fetched the page; "" for the first.
	Token string
	// Next fetches the page after it; "" if it is the last.
	Next string
	// Videos are in the order of the chart.
	Videos    []Video
	FetchedAt time.Time
	// Last completes the chart in the same transaction.
	Last bool
}

// StorePage stores a page of a chart and its videos in one transaction. It returns how many of
// the videos are new in this chart; a repeated video keeps its first place. Storing the same
// token again changes nothing. Any page but the chart's next one is refused.
func (c *Catalog) StorePage(ctx context.Context, id ChartID, page Page) (added int, err error) {
	err = c.update(ctx, func(s *txn) error {
		added, err = s.storePage(id, page)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("page %q of chart %d: %w", page.Token, id, err)
	}
	return added, nil
}

func (s *txn) storePage(id ChartID, page Page) (added int, err error) {
	places, stored, err := s.nextPage(id, page.Token)
	if err != nil || stored {
		return 0, err
	}
	if added, err = s.storePlaces(id, places, page); err != nil {
		return 0, err
	}
	if page.Last {
		err = s.complete(id, page.FetchedAt)
	}
	return added, err
}

// nextPage returns the number of places before this page, or whether the page is already stored.
func (s *txn) nextPage(id ChartID, token string) (places int, stored bool, err error) {
	var next string
	var complete bool
	err = s.row("chart_state", id, token).Scan(&next, &complete, &places, &stored)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, false, ErrNotFound
	case err != nil || stored:
		return places, stored, err
	case complete:
		return 0, false, errors.New("the chart is complete")
	case token != next:
		return 0, false, fmt.Errorf("the chart's next page is %q", next)
	}
	return places, false, nil
}

func (s *txn) storePlaces(id ChartID, places int, page Page) (added int, err error) {
	if _, err := s.exec("put_page", id, page.Token); err != nil {
		return 0, err
	}
	for i, video := range page.Videos {
		number, err := s.putVideo(video, page.FetchedAt)
		if err != nil {
			return 0, fmt.Errorf("video %q: %w", video.ID, err)
		}
		n, err := s.affect("put_entry", id, places+i+1, number)
		if err != nil {
			return 0, err
		}
		added += int(n)
	}
	at := page.FetchedAt.UnixMicro()
	_, err = s.exec("advance_chart", id, at, page.Next, len(page.Videos), added)
	return added, err
}

// storedVideo is a video's row before it is stored again.
type storedVideo struct {
	number            int64 // row ID; 0 if there is no row
	fetchedAt         int64 // µs
	names             names
	counters          counters
	tags, description string
}

type names struct{ title, channelID, channelTitle, category string }

type counters struct{ views, likes, comments sql.NullInt64 }

// putVideo stores a video fetched at the given moment, and records what changed. It does not
// store data older than the row's, so concurrent processes may overtake each other.
func (s *txn) putVideo(v Video, at time.Time) (number int64, err error) {
	before, err := s.find(v.ID)
	if err != nil {
		return 0, err
	}
	stamp := at.UnixMicro()
	if before.number != 0 && stamp < before.fetchedAt {
		return before.number, nil
	}
	now, err := v.row(before.number, stamp)
	if err != nil {
		return 0, err
	}
	if now.number, err = s.writeVideo(v, now); err != nil {
		return 0, err
	}
	return now.number, s.writeChanges(before, now, v)
}

func (s *txn) find(id string) (k storedVideo, err error) {
	err = s.row("find_video", id).Scan(&k.number, &k.fetchedAt,
		&k.names.title, &k.names.channelID, &k.names.channelTitle, &k.names.category,
		&k.counters.views, &k.counters.likes, &k.counters.comments, &k.tags, &k.description)
	if errors.Is(err, sql.ErrNoRows) {
		return storedVideo{}, nil
	}
	return k, err
}

func (v Video) row(number, stamp int64) (storedVideo, error) {
	tags, err := json.Marshal(append([]string{}, v.Tags...)) // never null
	return storedVideo{
		number: number, fetchedAt: stamp,
		names:       names{v.Title, v.ChannelID, v.ChannelTitle, v.Category},
		counters:    counters{count(v.Views), count(v.Likes), count(v.Comments)},
		tags:        string(tags),
		description: v.Description,
	}, err
}

// writeVideo writes the row and returns its ID. It inserts a row if now has none.
func (s *txn) writeVideo(v Video, now storedVideo) (number int64, err error) {
	query := "update_video"
	if now.number == 0 {
		query = "insert_video"
	}
	n, k := now.names, now.counters
	result, err := s.exec(query, v.ID, now.fetchedAt, n.title, n.channelID, n.channelTitle,
		n.category, k.views, k.likes, k.comments, nullable(v.PublishedAt), v.Duration, now.tags,
		now.description)
	if err != nil || now.number != 0 {
		return now.number, err
	}
	return result.LastInsertId()
}

// writeChanges writes history and index only if something changed, because most videos of a chart
// were in the previous one too.
func (s *txn) writeChanges(before, now storedVideo, v Video) error {
	fresh := before.number == 0
	if n := now.names; fresh || n != before.names {
		if _, err := s.exec("put_names", now.number, now.fetchedAt, n.title, n.channelID,
			n.channelTitle, n.category); err != nil {
			return err
		}
	}
	if k := now.counters; fresh || k != before.counters {
		if _, err := s.exec("put_counters", now.number, now.fetchedAt, k.views, k.likes,
			k.comments); err != nil {
			return err
		}
	}
	if fresh || now.names.title != before.names.title ||
		now.names.channelTitle != before.names.channelTitle ||
		now.tags != before.tags || now.description != before.description {
		s.texts = append(s.texts, text{now.number, v})
	}
	return nil
}

// text is a video to be indexed.
type text struct {
	number int64
	Video
}

func (s *txn) index() error {
	for _, t := range s.texts {
		_, err := s.exec("put_text", t.number, segment(t.Title), segment(t.ChannelTitle),
			segment(strings.Join(t.Tags, "\n")), segment(t.Description))
		if err != nil {
			return err
		}
	}
	return nil
}

func count(n *int64) sql.NullInt64 {
	if n == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: *n, Valid: true}
}

// roomForPage is more than a page of fifty videos with long texts adds to the file, including the
// index.
const roomForPage = 512 << 10

// CheckRoom returns an error if a page could not be stored now: the disk is full, another program
// holds the write lock, or the file is read-only, moved or damaged. Callers use it before they
// buy a page.
//
// It commits as many bytes as a large page takes, over those of the previous check. Nothing less
// would do: a rolled-back transaction never reaches the disk, and free space does not account for
// disk quotas.
func (c *Catalog) CheckRoom(ctx context.Context) error {
	return c.update(ctx, func(s *txn) error {
		_, err := s.exec("fill_room", roomForPage)
		return err
	})
}
