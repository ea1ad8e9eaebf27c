package youtube

import (
	"context"
	"encoding/json"
	"fmt"

	"quotabudget/internal/catalog"
	"quotabudget/internal/untrusted"
)

// MaxPage is the most videos that one call returns, by chart or by ID.
const MaxPage = 50

// ChartRequest names one page of a region's chart.
type ChartRequest struct {
	Region    string // ISO 3166-1 alpha-2
	PageToken string // "" for the first page
}

// Page is one page of a chart, in the order of rank.
type Page struct {
	Videos []catalog.Video
	Next   string // token of the next page; "" on the last page
}

// Chart reads one page of the chart of the most popular videos. It costs one call of
// youtube.videos.list per attempt. The error is an *Error (see KindOf), an error of the
// RoundTripper, or that of ctx.
func (c *Client) Chart(ctx context.Context, r ChartRequest) (page Page, err error) {
	err = c.call(ctx, func(ctx context.Context) error {
		var body []byte
		call := c.service.Videos.List([]string{"snippet", "contentDetails", "statistics"}).
			Chart("mostPopular").RegionCode(r.Region).MaxResults(MaxPage)
		if r.PageToken != "" {
			call.PageToken(r.PageToken)
		}
		_, err := call.Context(context.WithValue(ctx, bodyKey{}, &body)).Do()
		if err == nil {
			page, err = pageOf(body)
		}
		return err
	})
	return page, err
}

// pageOf reads a page. It treats a mistyped value in a video as missing. A mistyped list or page
// token is an error, because it would empty or end the chart.
func pageOf(body []byte) (Page, error) {
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return Page{}, err
	}
	list, _ := value.(map[string]any)
	kind, _ := list["kind"].(string)
	items, listed := list["items"].([]any)
	next, named := list["nextPageToken"].(string)
	page := Page{Videos: videos(items), Next: next}
	var bad untrusted.Unusable
	switch n := len(items); {
	// Any other JSON, null included, would replace a chart by an empty one.
	case kind == "" && list["items"] == nil:
		bad.Problem = "is not a list: it has neither kind nor items"
	case !listed && list["items"] != nil:
		bad = untrusted.Unusable{Path: "items", Problem: "is not a list"}
	case !named && list["nextPageToken"] != nil:
		bad = untrusted.Unusable{Path: "nextPageToken", Problem: "is not a string"}
	case n > MaxPage:
		bad = untrusted.Unusable{Path: "items",
			Problem: fmt.Sprintf("is a list of %d, %d at most", n, MaxPage)}
	case n > 0 && len(page.Videos) == 0:
		bad = untrusted.Unusable{Path: "items", Problem: "has no video with an id"}
	default:
		return page, nil
	}
	return Page{}, &bad
}
