package youtube

import (
	"context"
	"fmt"

	api "google.golang.org/api/youtube/v3"
)

// MaxPage is the most videos that one call brings, by chart or by ID.
const MaxPage = 50

// ChartRequest asks for one page of a region's chart.
type ChartRequest struct {
	Region    string // ISO 3166-1 alpha-2
	Category  string // "" for all
	PageToken string // "" for the first page
	PageSize  int    // 1 to MaxPage; 0 for MaxPage
}

// Page is one page of a chart, in the order of rank.
type Page struct {
	Videos []Video
	Next   string // the token of the next page; "" says that this is the last, whatever Total is
	Total  int64  // what the upstream claims the chart to hold
}

func videoParts() []string { return []string{"snippet", "contentDetails", "statistics"} }

// Chart reads one page of the chart of the most popular videos. It costs one call of youtube.videos.list each time it is
// sent. Errors: an *Error, which KindOf tells apart; whatever the RoundTripper denied with; the end of ctx.
func (c *Client) Chart(ctx context.Context, r ChartRequest) (Page, error) {
	size := r.PageSize
	if size == 0 {
		size = MaxPage
	}
	list := func() *api.VideosListCall {
		call := c.service.Videos.List(videoParts()).Chart("mostPopular").RegionCode(r.Region).MaxResults(int64(size))
		if r.Category != "" {
			call.VideoCategoryId(r.Category)
		}
		if r.PageToken != "" {
			call.PageToken(r.PageToken)
		}
		return call
	}
	return c.videos(ctx, list)
}

// Videos asks for videos by their IDs, at most MaxPage. Those that the upstream does not know are missing from the answer.
// It costs and fails as Chart does.
func (c *Client) Videos(ctx context.Context, ids []string) ([]Video, error) {
	if len(ids) > MaxPage {
		return nil, fmt.Errorf("%d videos asked for in one call: at most %d", len(ids), MaxPage)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	page, err := c.videos(ctx, func() *api.VideosListCall { return c.service.Videos.List(videoParts()).Id(ids...) })
	return page.Videos, err
}

func (c *Client) videos(ctx context.Context, list func() *api.VideosListCall) (Page, error) {
	var page Page
	err := c.call(ctx, func(ctx context.Context) error {
		ctx, kept := keep(ctx)
		res, err := list().Context(ctx).Do()
		if err != nil {
			return err
		}
		if res == nil || res.Kind == "" && res.Items == nil {
			return errNoList()
		}
		if n := len(res.Items); n > MaxPage {
			return &unusable{"items", fmt.Sprintf("is a list of %d, %d at most", n, MaxPage)}
		}
		page = Page{Next: res.NextPageToken}
		if res.PageInfo != nil {
			page.Total = res.PageInfo.TotalResults
		}
		page.Videos, err = videos(res.Items, kept.body)
		return err
	})
	if err != nil {
		return Page{}, err
	}
	return page, nil
}

// errNoList refuses JSON that is no list at all, null included: taken for an empty one, it would replace a chart.
func errNoList() error { return &unusable{"", "is no list: it has neither kind nor items"} }

// Category is a category of videos in a region.
type Category struct {
	ID         string
	Title      string
	Assignable bool // whether videos can be put into it
}

// Categories lists the categories of a region. It costs one call of youtube.videoCategories.list and fails as Chart does.
func (c *Client) Categories(ctx context.Context, region string) ([]Category, error) {
	var all []Category
	err := c.call(ctx, func(ctx context.Context) error {
		res, err := c.service.VideoCategories.List([]string{"snippet"}).RegionCode(region).Context(ctx).Do()
		if err != nil {
			return err
		}
		if res == nil || res.Kind == "" && res.Items == nil {
			return errNoList()
		}
		all = nil
		for _, item := range res.Items {
			if item != nil && item.Snippet != nil {
				all = append(all, Category{item.Id, item.Snippet.Title, item.Snippet.Assignable})
			}
		}
		return nil
	})
	return all, err
}

// Region is a region that the upstream serves.
type Region struct {
	Code string // ISO 3166-1 alpha-2
	Name string
}

// Regions lists the regions that the upstream serves. It costs one call of youtube.i18nRegions.list and fails as Chart does.
func (c *Client) Regions(ctx context.Context) ([]Region, error) {
	var all []Region
	err := c.call(ctx, func(ctx context.Context) error {
		res, err := c.service.I18nRegions.List([]string{"snippet"}).Context(ctx).Do()
		if err != nil {
			return err
		}
		if res == nil || res.Kind == "" && res.Items == nil {
			return errNoList()
		}
		all = nil
		for _, item := range res.Items {
			if item != nil && item.Snippet != nil {
				all = append(all, Region{item.Snippet.Gl, item.Snippet.Name})
			}
		}
		return nil
	})
	return all, err
}
