package youtube

import (
	"context"
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
		page = Page{}
		var body []byte
		call := c.service.Videos.List([]string{"snippet", "contentDetails", "statistics"}).
			Chart("mostPopular").RegionCode(r.Region).MaxResults(MaxPage)
		if r.PageToken != "" {
			call.PageToken(r.PageToken)
		}
		res, err := call.Context(context.WithValue(ctx, bodyKey{}, &body)).Do()
		if err != nil {
			return err
		}
		// Any other JSON, null included, would replace a chart by an empty one.
		if res == nil || res.Kind == "" && res.Items == nil {
			return &untrusted.Unusable{Problem: "is not a list: it has neither kind nor items"}
		}
		if n := len(res.Items); n > MaxPage {
			return &untrusted.Unusable{Path: "items",
				Problem: fmt.Sprintf("is a list of %d, %d at most", n, MaxPage)}
		}
		if page.Videos, err = videos(res.Items, body); err != nil {
			return err
		}
		if len(res.Items) > 0 && len(page.Videos) == 0 {
			return &untrusted.Unusable{Path: "items", Problem: "has no video with an id"}
		}
		page.Next = res.NextPageToken
		return nil
	})
	return page, err
}
