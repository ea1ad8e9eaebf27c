package serve

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"quotabudget/internal/catalog"
	"quotabudget/internal/limit"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/untrusted"
	"quotabudget/internal/words"
)

// api registers the operations of /v1; this function is their table of contents. The OpenAPI
// document is made from the response types.
func (s *Server) api(mux *http.ServeMux) huma.API {
	program, _ := report.Version()
	config := huma.DefaultConfig("quotabudget", program)
	config.Info.Description = "Charts and videos from the catalogue, and what is left of the " +
		"quota. Charges and holds take units; no request reaches the upstream."
	// The defaults load scripts from other sites, and add a $schema to each response.
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil
	format := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal,
		Unmarshal: untrusted.Unmarshal}
	config.Formats = map[string]huma.Format{"application/json": format, "json": format}
	config.DefaultFormat = "application/json"
	config.RejectUnknownQueryParameters = true
	config.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[words.Time](),
		reflect.TypeFor[*time.Time]())
	api := humago.New(mux, config)

	if s.Catalog != nil {
		s.catalogue(api)
	}
	s.budgets(api)
	s.charges(api)
	s.decisions(api)
	return api
}

// catalogue registers the operations on the catalogue and on short links.
func (s *Server) catalogue(api huma.API) {
	get(s, api, "/v1/regions", "Which regions there are, and how old their charts are", s.regions)
	get(s, api, "/v1/charts/{region}", "The chart of a region, now or at a moment", s.chart)
	get(s, api, "/v1/charts/{region}/history", "The charts of a region, newest first", s.history)
	get(s, api, "/v1/charts/{region}/changes", "What changed between two charts", s.changes)
	get(s, api, "/v1/videos/{id}", "A video, and how its names and counters changed", s.video)
	get(s, api, "/v1/search", "Find videos by title, channel, tag or description", s.search)
	get(s, api, "/v1/sweeps", "Which runs fetched charts, newest first", s.sweeps)
	s.links(api)
}

// output is a response with its caching headers.
type output[T any] struct {
	CacheControl string `header:"Cache-Control"`
	LastModified string `header:"Last-Modified"`
	Body         T
}

// get registers an operation that reads the catalogue or the ledger.
func get[I, O any](s *Server, api huma.API, path, summary string,
	answer func(context.Context, *I) (*output[O], error), more ...func(*huma.Operation)) {
	huma.Get(api, path, answering(s, answer), append([]func(*huma.Operation){limited(api),
		func(o *huma.Operation) {
			o.Summary, o.Errors = summary, []int{400, 404, 422, 500}
		}}, more...)...)
}

// answering returns a handler that answers an error with its problem.
func answering[I, O any](s *Server, answer func(context.Context, *I) (*O, error)) func(
	context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		out, err := answer(ctx, in)
		if err == nil || errors.As(err, new(huma.HeadersError)) {
			return out, err
		}
		problem := s.problem(ctx, err)
		if problem.GetStatus() == http.StatusServiceUnavailable {
			return nil, huma.ErrorWithHeaders(problem, http.Header{"Retry-After": {"5"}})
		}
		return nil, problem
	}
}

// limited documents that an operation may be denied.
func limited(api huma.API) func(*huma.Operation) {
	schema := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[limit.Problem](), true, "")
	return func(o *huma.Operation) {
		o.Responses = map[string]*huma.Response{"429": {
			Description: "a limit denies the request; Retry-After is when it will be allowed",
			Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: schema}},
		}}
	}
}

// refusals are the statuses of errors whose text is for the client.
var refusals = []struct {
	err    error
	status int
}{
	{catalog.ErrNotFound, http.StatusNotFound},
	{quota.ErrNotAllowed, http.StatusForbidden},
	{quota.ErrUnpriced, http.StatusNotFound},
	{quota.ErrNoBucket, http.StatusNotFound},
	{quota.ErrNoReservation, http.StatusNotFound},
	{quota.ErrKeyReused, http.StatusConflict},
	{quota.ErrSettledLate, http.StatusConflict},
	{quota.ErrMalformed, http.StatusUnprocessableEntity},
}

// problem returns the response to an error. It logs internal failures and hides their details.
func (s *Server) problem(ctx context.Context, err error) huma.StatusError {
	var status huma.StatusError
	if errors.As(err, &status) {
		return status
	}
	for _, row := range refusals {
		if errors.Is(err, row.err) {
			return huma.NewError(row.status, err.Error())
		}
	}
	if ctx.Err() == nil {
		s.logFailure(err)
	}
	switch {
	case errors.Is(err, quota.ErrUnreachable):
		return huma.Error503ServiceUnavailable("the ledger cannot be reached now")
	case errors.Is(err, quota.ErrLedgerUnusable):
		return huma.Error503ServiceUnavailable("the ledger cannot be used: see the server's log")
	}
	return huma.Error500InternalServerError("the catalogue or the ledger cannot be read now")
}

// logFailure logs a failure of the ledger or the catalogue, each at most once a minute.
func (s *Server) logFailure(err error) {
	sometimes, text := &s.catalogFailed, "cannot read the catalogue"
	if errors.Is(err, quota.ErrUnreachable) || errors.Is(err, quota.ErrLedgerUnusable) {
		sometimes, text = &s.ledgerFailed, "cannot read the ledger"
	}
	sometimes.Do(func() { s.Log.Error(text, "error", err) })
}
