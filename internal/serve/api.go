package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
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

	read, private, charging := errorsOf(400, 404, 422, 500), s.private(api), s.charging(api)
	if s.Catalog != nil {
		route(s, api, "GET /v1/regions", "Which regions there are, and how old their charts are",
			s.regions, read)
		route(s, api, "GET /v1/charts/{region}", "The chart of a region, now or at a moment", s.chart,
			read)
		route(s, api, "GET /v1/charts/{region}/history", "The charts of a region, newest first",
			s.history, read)
		route(s, api, "GET /v1/charts/{region}/changes", "What changed between two charts", s.changes,
			read)
		route(s, api, "GET /v1/videos/{id}", "A video, and how its names and counters changed",
			s.video, read)
		route(s, api, "GET /v1/search", "Find videos by title, channel, tag or description", s.search,
			read)
		route(s, api, "GET /v1/sweeps", "Which runs fetched charts, newest first", s.sweeps, read)
		route(s, api, "POST /v1/links", "Make a short link to a chart, a video or a search", s.link,
			errorsOf(422, 500), shortBody, creates)
	}
	route(s, api, "GET /v1/budgets", "What is left of each quota, as in quotactl status", s.status,
		read, private)
	route(s, api, "GET /v1/forecast", "When each bucket will run dry, as in quotactl forecast",
		s.forecast, read, private)
	route(s, api, "GET /v1/plan", "What the schedule will spend from now on, as in ingestor plan",
		s.plan, read, private)
	route(s, api, "GET /v1/log", "Who spent units, added up by a label", s.log, read, private)
	route(s, api, "GET /v1/log/entries", "The newest charges, newest first", s.entries, read, private)
	route(s, api, "POST /v1/charges", "Charge units before a call, as quotactl spend does", s.charge,
		charging)
	route(s, api, "POST /v1/holds", "Set units aside, as quotactl reserve does", s.hold, charging,
		creates)
	route(s, api, "PATCH /v1/holds/{hold}", "Extend a hold; it is never shortened", s.extend,
		charging)
	route(s, api, "POST /v1/holds/{hold}/settlements",
		"Book what a call used of a hold, as quotactl settle does", s.settle, charging)
	route(s, api, "DELETE /v1/holds/{hold}",
		"Give back what is left of a hold, as quotactl release does", s.release, charging)
	route(s, api, "POST /v1/decisions",
		"Ask whether a caller of another program is within its policy", s.decide,
		errorsOf(404, 422), shortBody, private)
	amend(api)
	return api
}

// option changes the documentation of an operation, or its middleware.
type option = func(*huma.Operation)

// errorsOf documents the error statuses of an operation.
func errorsOf(statuses ...int) option {
	return func(o *huma.Operation) { o.Errors = statuses }
}

// shortBody limits the request body to 4 KiB.
func shortBody(o *huma.Operation) { o.MaxBodyBytes = 4096 }

func creates(o *huma.Operation) { o.DefaultStatus = http.StatusCreated }

// route registers an operation, such as GET /v1/regions.
func route[I, O any](s *Server, api huma.API, route, summary string,
	answer func(context.Context, *I) (*O, error), options ...option) {
	method, path, _ := strings.Cut(route, " ")
	denied := problems(api, "a limit denies the request; Retry-After is when it will be allowed",
		reflect.TypeFor[limit.Problem]())
	o := huma.Operation{Method: method, Path: path, Summary: summary,
		OperationID: huma.GenerateOperationID(method, path, new(O)),
		Responses:   map[string]*huma.Response{"429": denied}}
	for _, set := range options {
		set(&o)
	}
	o.Errors = append(o.Errors, 503) // if the ledger, catalogue or store of limits is unreachable
	if method != http.MethodGet {
		o.Errors = append(o.Errors, 403) // for requests of web pages of other sites
	}
	if o.MaxBodyBytes > 0 {
		o.Errors = append(o.Errors, 400, 408, 413, 415)
		o.Middlewares = append(o.Middlewares, withBody(api, o.MaxBodyBytes))
		o.BodyReadTimeout = answerWithin // withBody has read it
	}
	huma.Register(api, o, answering(s, answer))
}

// withBody reads at most size bytes of the body before huma does, because huma answers 500 if the
// body is cut off. It makes the media type lower-case, as huma requires. It then sets the read
// deadline to answerWithin, because the body's deadline would cancel a request that waits for the
// ledger.
func withBody(api huma.API, size int64) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, _ := humago.Unwrap(ctx)
		r.Header.Set("Content-Type", strings.ToLower(r.Header.Get("Content-Type")))
		body, err := io.ReadAll(io.LimitReader(r.Body, size))
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			huma.WriteErr(api, ctx, http.StatusRequestTimeout, "the body took too long to arrive")
		case err != nil:
			huma.WriteErr(api, ctx, http.StatusBadRequest, "cannot read the body: "+err.Error())
		default:
			r.Body = io.NopCloser(bytes.NewReader(body))
			ctx.SetReadDeadline(time.Now().Add(answerWithin))
			next(ctx)
		}
	}
}

// problems documents a response whose body is a problem of one of the types.
func problems(api huma.API, description string, types ...reflect.Type) *huma.Response {
	schema := &huma.Schema{}
	for _, t := range types {
		schema.AnyOf = append(schema.AnyOf, api.OpenAPI().Components.Schemas.Schema(t, true, ""))
	}
	if len(types) == 1 {
		schema = schema.AnyOf[0]
	}
	return &huma.Response{Description: description,
		Content: map[string]*huma.MediaType{problemJSON: {Schema: schema}}}
}

// amend corrects the documentation that the library generates. The library does not infer from a
// pointer that an object may be null, and it adds its own 422.
func amend(api huma.API) {
	schemas := api.OpenAPI().Components.Schemas.Map()
	for name, properties := range map[string][]string{"Plan": {"first_lost", "suggestion"},
		"DayPlan": {"first_lost"}} {
		for _, property := range properties {
			schemas[name].Properties[property] = &huma.Schema{
				AnyOf: []*huma.Schema{schemas[name].Properties[property], {Type: "null"}}}
		}
	}
	for _, path := range []string{"/v1/charges", "/v1/holds"} {
		api.OpenAPI().Paths[path].Post.Responses["422"] = problems(api,
			"the request is malformed, or the cost never fits (never is true)",
			reflect.TypeFor[denial](), reflect.TypeFor[huma.ErrorModel]())
	}
}

// output is a response with its caching headers.
type output[T any] struct {
	CacheControl string `header:"Cache-Control"`
	LastModified string `header:"Last-Modified"`
	Body         T
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

// statusClientClosed is nginx's status for a client that disconnects before the response. It is not
// a failure of the server.
const statusClientClosed = 499

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
	if ctx.Err() != nil { // nobody reads the response, but the metrics count it
		return huma.NewError(statusClientClosed, "the client disconnected")
	}
	s.logFailure(err)
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

// list is one page of a list.
type list[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next" doc:"the cursor of the next page; null on the last one"`
}

// Paging asks for one page of a list.
type Paging struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Cursor string `query:"cursor" maxLength:"20" doc:"next of the previous page"`
}

// start returns the number in the cursor, 0 for the first page.
func (p Paging) start() (int64, error) {
	if p.Cursor == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(p.Cursor, 36, 64)
	if err != nil || n < 1 {
		return 0, huma.Error400BadRequest("cursor: send the next of the previous page")
	}
	return n, nil
}

// newList returns a list of the items, which caches may keep for the given seconds.
func newList[T, U any](seconds int, items []T, show func(T) U) *output[list[U]] {
	out := &output[list[U]]{Body: list[U]{Items: []U{}}}
	if seconds > 0 {
		out.CacheControl = fmt.Sprintf("max-age=%d", seconds)
	}
	for _, item := range items {
		out.Body.Items = append(out.Body.Items, show(item))
	}
	return out
}

// newPage returns a page of at most limit items. The caller passes one item more if another page
// follows. after computes the cursor of that page from the last item shown.
func newPage[T, U any](seconds int, items []T, limit int, show func(T) U,
	after func(T) int64) *output[list[U]] {
	out := newList(seconds, items[:min(len(items), limit)], show)
	if len(items) > limit {
		out.Body.Next = new(strconv.FormatInt(after(items[limit-1]), 36))
	}
	return out
}
