package youtube

import (
	"encoding/json"
	"regexp"
	"strconv"
	"time"

	api "google.golang.org/api/youtube/v3"

	"quotabudget/internal/catalog"
)

// videos joins the official client's items with the counters in the body, because the client's
// types do not distinguish a counter of zero from a missing one. It skips items without an ID.
func videos(items []*api.Video, body []byte) ([]catalog.Video, error) {
	var counted struct {
		Items []struct {
			Statistics struct{ ViewCount, LikeCount, CommentCount *string }
		}
	}
	if err := json.Unmarshal(body, &counted); err != nil {
		return nil, err
	}
	all := make([]catalog.Video, 0, len(items))
	for i, item := range items {
		if item == nil || item.Id == "" {
			continue
		}
		v := videoOf(item)
		if i < len(counted.Items) {
			s := counted.Items[i].Statistics
			v.Views, v.Likes, v.Comments = number(s.ViewCount), number(s.LikeCount),
				number(s.CommentCount)
		}
		all = append(all, v)
	}
	return all, nil
}

// number reads a counter, which the upstream writes as a decimal string; nil if it is missing.
func number(text *string) *int64 {
	if text == nil {
		return nil
	}
	n, err := strconv.ParseInt(*text, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

var isoDuration = regexp.MustCompile(`^P[0-9WDTHMS]{2,40}$`)

// liveDuration is the duration of a live broadcast, which has none.
const liveDuration = "P0D"

func videoOf(item *api.Video) catalog.Video {
	v := catalog.Video{ID: item.Id}
	if s := item.Snippet; s != nil {
		v.Title, v.Description, v.Tags = s.Title, s.Description, s.Tags
		v.ChannelID, v.ChannelTitle, v.Category = s.ChannelId, s.ChannelTitle, s.CategoryId
		v.PublishedAt, _ = time.Parse(time.RFC3339, s.PublishedAt)
	}
	d := item.ContentDetails
	if d != nil && isoDuration.MatchString(d.Duration) && d.Duration != liveDuration {
		v.Duration = d.Duration
	}
	return v
}
