package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	if err := s.exec("put_page", id, page.Token); err != nil {
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
	return added, s.exec("advance_chart", id, at, page.Next, len(page.Videos), added)
}

// putVideo stores a video fetched at the given moment, and records what changed. It does not
// store data older than the row's, so concurrent processes may overtake each other.
func (s *txn) putVideo(v Video, at time.Time) (number int64, err error) {
	before, err := scanSeen(s.row("find_video", v.ID), &number)
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil && before.ID == "": // the new tags replace tags that cannot be read
		return 0, err
	case at.UnixMicro() < before.FetchedAt.UnixMicro():
		return number, nil
	}
	tags, err := json.Marshal(append([]string{}, v.Tags...)) // never null
	if err != nil {
		return 0, err
	}
	published := sql.NullInt64{Int64: v.PublishedAt.UnixMicro(), Valid: !v.PublishedAt.IsZero()}
	err = s.row("put_video", v.ID, at.UnixMicro(), v.Title, v.ChannelID, v.ChannelTitle,
		v.Category, v.Views, v.Likes, v.Comments, published, v.Duration, string(tags),
		v.Description).Scan(&number)
	if err != nil {
		return 0, err
	}
	return number, s.writeChanges(number, before.Video, v, at)
}

// writeChanges writes history and index only if something changed, because most videos of a chart
// were in the previous one too. For a new video, before has no ID.
func (s *txn) writeChanges(number int64, before, now Video, at time.Time) error {
	fresh := before.ID == ""
	renamed := now.Title != before.Title || now.ChannelTitle != before.ChannelTitle
	if fresh || renamed || now.ChannelID != before.ChannelID || now.Category != before.Category {
		if err := s.exec("put_names", number, at.UnixMicro(), now.Title, now.ChannelID,
			now.ChannelTitle, now.Category); err != nil {
			return err
		}
	}
	if fresh || !sameCount(now.Views, before.Views) || !sameCount(now.Likes, before.Likes) ||
		!sameCount(now.Comments, before.Comments) {
		if err := s.exec("put_counters", number, at.UnixMicro(), now.Views, now.Likes,
			now.Comments); err != nil {
			return err
		}
	}
	if fresh || renamed || !slices.Equal(now.Tags, before.Tags) ||
		now.Description != before.Description {
		s.texts = append(s.texts, text{number, now})
	}
	return nil
}

func sameCount(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

// text is a video to be indexed.
type text struct {
	number int64
	Video
}

func (s *txn) index() error {
	for _, t := range s.texts {
		err := s.exec("put_text", t.number, segment(t.Title), segment(t.ChannelTitle),
			segment(strings.Join(t.Tags, "\n")), segment(t.Description))
		if err != nil {
			return err
		}
	}
	return nil
}

// roomForPage is more than a page of fifty videos with long texts adds to the file, including the
// index.
const roomForPage = 512 << 10

// CheckRoom returns an error if a page could not be stored now: the disk is full, another program
// holds the write lock, or the file is read-only, moved or damaged. Callers use it before they pay
// for a page.
//
// It commits as many bytes as a large page takes, and overwrites those of the previous check. A
// rolled-back transaction would not reach the disk, and the free space does not account for disk
// quotas.
func (c *Catalog) CheckRoom(ctx context.Context) error {
	return c.exec(ctx, "fill_room", roomForPage)
}
