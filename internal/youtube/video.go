package youtube

import (
	"regexp"
	"strconv"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/untrusted"
)

// videos reads the items of a page. It skips items without an ID.
func videos(items []any) []catalog.Video {
	all := make([]catalog.Video, 0, len(items))
	for _, item := range items {
		if v := videoOf(item); v.ID != "" {
			all = append(all, v)
		}
	}
	return all
}

var isoDuration = regexp.MustCompile(`^P[0-9WDTHMS]{2,40}$`)

// liveDuration is the duration of a live broadcast, which has none.
const liveDuration = "P0D"

func videoOf(item any) catalog.Video {
	text := func(path string) string { return untrusted.FirstText(item, path) }
	v := catalog.Video{
		ID: text("id"), Title: text("snippet.title"), Description: text("snippet.description"),
		ChannelID: text("snippet.channelId"), ChannelTitle: text("snippet.channelTitle"),
		Category: text("snippet.categoryId"), Views: counter(item, "statistics.viewCount"),
		Likes:    counter(item, "statistics.likeCount"),
		Comments: counter(item, "statistics.commentCount"),
	}
	v.PublishedAt, _ = time.Parse(time.RFC3339, text("snippet.publishedAt"))
	for _, tag := range untrusted.Values(item, "snippet.tags.*") {
		if tag, ok := tag.(string); ok {
			v.Tags = append(v.Tags, tag)
		}
	}
	d := text("contentDetails.duration")
	if isoDuration.MatchString(d) && d != liveDuration {
		v.Duration = d
	}
	return v
}

// counter reads a counter, which the upstream writes as a decimal string. It returns nil if the
// counter is missing or is not a number.
func counter(item any, path string) *int64 {
	text, _ := untrusted.FindText(item, path)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return nil
	}
	return &n
}
