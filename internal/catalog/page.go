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

// Page is one answer of the upstream.
type Page struct {
	// Token fetched the page; "" for the first.
	Token string
	// Next fetches the page after it; "" when there is none.
	Next string
	// Videos are in the order of the chart.
	Videos    []Video
	FetchedAt time.Time
	// Last completes the chart together with this page, in one step.
	Last bool
}

// StorePage stores a page of a chart and the videos on it, all or nothing, and returns how many of
// the videos are new in this chart: a video that was on an earlier place keeps that place only. A
// page whose token was stored before changes nothing. The page that is not the chart's next is
// refused.
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

// nextPage returns how many places the pages before have, or stored when the page is there already.
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

// known is what the catalogue has of a video before it is stored again.
type known struct {
	number            int64 // 0: nothing
	fetchedAt         int64 // µs
	names             names
	counters          counters
	tags, description string
}

type names struct{ title, channelID, channelTitle, category string }

type counters struct{ views, likes, comments sql.NullInt64 }

// putVideo stores what was fetched at that moment and notes what is different from before. What is
// older than what is known is not stored, so that two processes may be overtaken by each other.
func (s *txn) putVideo(v Video, at time.Time) (number int64, err error) {
	before, err := s.find(v.ID)
	if err != nil {
		return 0, err
	}
	stamp := at.UnixMicro()
	if before.number != 0 && stamp < before.fetchedAt {
		return before.number, nil
	}
	now, err := v.known(before.number, stamp)
	if err != nil {
		return 0, err
	}
	if now.number, err = s.writeVideo(v, now); err != nil {
		return 0, err
	}
	return now.number, s.writeChanges(before, now, v)
}

func (s *txn) find(id string) (k known, err error) {
	err = s.row("find_video", id).Scan(&k.number, &k.fetchedAt,
		&k.names.title, &k.names.channelID, &k.names.channelTitle, &k.names.category,
		&k.counters.views, &k.counters.likes, &k.counters.comments, &k.tags, &k.description)
	if errors.Is(err, sql.ErrNoRows) {
		return known{}, nil
	}
	return k, err
}

func (v Video) known(number, stamp int64) (known, error) {
	tags, err := json.Marshal(append([]string{}, v.Tags...)) // never null
	return known{
		number: number, fetchedAt: stamp,
		names:       names{v.Title, v.ChannelID, v.ChannelTitle, v.Category},
		counters:    counters{count(v.Views), count(v.Likes), count(v.Comments)},
		tags:        string(tags),
		description: v.Description,
	}, err
}

// writeVideo returns the number of the row, which is a new one if now has none.
func (s *txn) writeVideo(v Video, now known) (number int64, err error) {
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

// writeChanges writes history and index only where something changed: most videos of a chart were
// in the last one too.
func (s *txn) writeChanges(before, now known, v Video) error {
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

// text is a video whose words are to be indexed.
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
