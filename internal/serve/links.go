package serve

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// linkable matches the pages that a short link may lead to.
var linkable = regexp.MustCompile(`^/(charts/[A-Z]{2}|videos/[A-Za-z0-9_-]+|search)$`)

type linkInput struct {
	Body struct {
		To string `json:"to" maxLength:"512" example:"/charts/US?at=2026-07-01T09:00:00Z"`
	}
}

type linkOutput struct {
	Location string `header:"Location"`
	Body     struct {
		Slug string `json:"slug"`
		URL  string `json:"url" doc:"path of the short link on this server"`
	}
}

// link returns the short link to a page. All callers get the same link.
func (s *Server) link(ctx context.Context, in *linkInput) (*linkOutput, error) {
	to, err := url.Parse(in.Body.To)
	if err != nil || to.IsAbs() || to.Host != "" || to.Fragment != "" ||
		!linkable.MatchString(to.Path) {
		return nil, huma.Error400BadRequest("to: write the path of a chart, a video or a " +
			"search, such as /charts/US, /videos/dQw4w9WgXcQ or /search?q=lofi")
	}
	out := &linkOutput{}
	out.Body.Slug, err = s.Catalog.PutLink(ctx, to.RequestURI(), time.Now())
	out.Body.URL = "/s/" + out.Body.Slug
	out.Location = out.Body.URL
	return out, err
}

func (s *Server) follow(w http.ResponseWriter, r *http.Request) {
	path, err := s.Catalog.Link(r.Context(), r.PathValue("slug"))
	if err != nil {
		writeProblem(w, s.problem(r.Context(), err))
		return
	}
	http.Redirect(w, r, path, http.StatusFound)
}
