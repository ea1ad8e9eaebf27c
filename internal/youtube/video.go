package youtube

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"time"

	api "google.golang.org/api/youtube/v3"
)

// Video is a video as the upstream describes it. Text is kept byte for byte.
type Video struct {
	ID           string
	Title        string
	ChannelID    string
	ChannelTitle string
	CategoryID   string
	PublishedAt  time.Time // zero if missing
	Description  string
	Tags         []string      // unchanged, repeated and empty ones included
	Duration     time.Duration // 0 if missing, and for a live broadcast

	// Counters are nil if the upstream omits them, which is not zero.
	Views    *int64
	Likes    *int64
	Comments *int64
}

// videos joins the official client's items with the counters in the body. It skips items without
// an ID.
func videos(items []*api.Video, body []byte) ([]Video, error) {
	var counted struct {
		Items []struct {
			Statistics struct{ ViewCount, LikeCount, CommentCount *string }
		}
	}
	if err := json.Unmarshal(body, &counted); err != nil {
		return nil, err
	}
	all := make([]Video, 0, len(items))
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

func videoOf(item *api.Video) Video {
	v := Video{ID: item.Id}
	if s := item.Snippet; s != nil {
		v.Title, v.Description, v.Tags = s.Title, s.Description, s.Tags
		v.ChannelID, v.ChannelTitle, v.CategoryID = s.ChannelId, s.ChannelTitle, s.CategoryId
		v.PublishedAt, _ = time.Parse(time.RFC3339, s.PublishedAt)
	}
	if d := item.ContentDetails; d != nil {
		v.Duration = parseDuration(d.Duration)
	}
	return v
}

var isoDuration = regexp.MustCompile(
	`^P(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?$`)

// parseDuration reads the upstream's ISO 8601 durations, such as PT1H2M3S and P1DT2S. It returns
// 0 for anything else.
func parseDuration(text string) time.Duration {
	amounts := isoDuration.FindStringSubmatch(text)
	if amounts == nil {
		return 0
	}
	var sum int64
	for i, seconds := range []int64{7 * 24 * 3600, 24 * 3600, 3600, 60, 1} {
		n, _ := strconv.ParseInt(amounts[i+1], 10, 64) // 0 for a missing part
		sum += n * seconds
	}
	if sum > int64(math.MaxInt64/time.Second) {
		return 0
	}
	return time.Duration(sum) * time.Second
}
