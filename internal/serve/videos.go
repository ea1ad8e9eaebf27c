package serve

import (
	"context"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"quotabudget/internal/catalog"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

type videoInput struct {
	ID string `path:"id" maxLength:"64" doc:"as the upstream has it"`
}

func (s *Server) video(ctx context.Context, in *videoInput) (*output[report.History], error) {
	h, err := s.Catalog.Video(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return dated(h.FetchedAt, report.NewHistory(h)), nil
}

// mostResults bounds how far a search can be paged through.
const mostResults = 500

type searchInput struct {
	Query string `query:"q" required:"true" minLength:"1" maxLength:"200"`
	Paging
}

func (s *Server) search(ctx context.Context, in *searchInput) (*output[list[report.Video]], error) {
	if strings.TrimSpace(in.Query) == "" {
		return nil, huma.Error400BadRequest("q: write words to search for")
	}
	skip, err := in.start()
	if err != nil {
		return nil, err
	}
	if skip > mostResults {
		return nil, huma.Error400BadRequest("cursor: a search shows 500 videos at most: " +
			"add a word to q")
	}
	matches, err := s.Catalog.Search(ctx, in.Query, int(skip), in.Limit+1)
	show := func(v catalog.Seen) report.Video { return report.NewVideo(v, 0) }
	after := func(catalog.Seen) int64 { return skip + int64(in.Limit) }
	return newPage(30, matches, in.Limit, show, after), err
}

type sweep struct {
	Run       string     `json:"run"`
	StartedAt words.Time `json:"started_at"`
	EndedAt   words.Time `json:"ended_at" doc:"when its newest page was fetched"`
	Charts    int        `json:"charts" doc:"charts that the run began"`
	Complete  int        `json:"complete" doc:"charts of these that are complete"`
	Pages     int        `json:"pages"`
	Videos    int        `json:"videos"`
}

func (s *Server) sweeps(ctx context.Context, in *Paging) (*output[list[sweep]], error) {
	start, err := in.start()
	if err != nil {
		return nil, err
	}
	var before time.Time
	if start > 0 {
		before = time.UnixMicro(start)
	}
	runs, err := s.Catalog.Runs(ctx, before, in.Limit+1)
	show := func(r catalog.Run) sweep {
		return sweep{r.ID, words.Time(r.StartedAt), words.Time(r.EndedAt), r.Charts, r.Complete,
			r.Pages, r.Videos}
	}
	after := func(r catalog.Run) int64 { return r.StartedAt.UnixMicro() }
	return newPage(5, runs, in.Limit, show, after), err
}
