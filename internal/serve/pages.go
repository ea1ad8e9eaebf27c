package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"quotabudget/internal/limit"
	"quotabudget/internal/report"
)

// site serves the web pages. A page is rendered on the server, including its plots, and complete
// without scripts. With scripts, an open page reloads its data every few seconds.
type site struct {
	*Server
	forecasts cached[[]report.Forecast]
	plans     [maxDays]cached[report.Planned]
	alive     cached[bool] // a daemon responds
	failed    *template.Template
}

//go:embed templates/*
var templateFiles embed.FS

type page struct {
	Title   string
	Section string // of the menu
	Query   string // of the search field
	Now     time.Time
	Private bool // the reader may see budgets, log and plan
	Live    bool // reloads its data while it is open
	Body    any
}

// answer returns the page for a request.
type answer func(ctx context.Context, r *http.Request, now time.Time) (page, error)

// anyPage is the pattern that matches paths without a page.
const anyPage = "GET /"

// routes adds the pages to mux. This function is their table of contents.
func (p *site) routes(mux *http.ServeMux) {
	p.failed = p.parse("error")
	mux.Handle("GET /{$}", p.page("board", p.board))
	mux.Handle("GET /log", p.page("log", p.log))
	mux.Handle("GET /plan", p.page("plan", p.plan))
	mux.Handle("GET /charts", p.page("regions", p.regions))
	mux.Handle("GET /charts/{region}", p.page("chart", p.chart))
	mux.Handle("GET /videos/{id}", p.page("video", p.video))
	mux.Handle("GET /search", p.page("search", p.search))
	mux.HandleFunc("GET /static/{name}", static)
	mux.Handle(anyPage, p.page("error", func(context.Context, *http.Request, time.Time) (page,
		error) {
		return page{}, notFound("no such page")
	}))
}

func notFound(format string, args ...any) error {
	return huma.Error404NotFound(fmt.Sprintf(format, args...))
}

func badRequest(format string, args ...any) error {
	return huma.Error400BadRequest(fmt.Sprintf(format, args...))
}

// page serves the page that make returns, or an error page.
func (p *site) page(name string, make answer) http.Handler {
	layout := p.parse(name)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now, status, shown := time.Now(), http.StatusOK, layout
		content, err := make(r.Context(), r, now)
		if err != nil {
			problem := p.problem(r.Context(), err)
			status, shown = problem.GetStatus(), p.failed
			content = page{Title: http.StatusText(status), Body: problem.Error()}
		}
		content.Now, content.Private = now, p.private(r)
		if status == http.StatusUnauthorized { // the password is a token; the name is any
			w.Header().Set("WWW-Authenticate", `Basic realm="quotabudget", charset="UTF-8"`)
		}
		keepPrivate(w.Header())
		if status == http.StatusOK && !content.Private {
			w.Header().Set("Cache-Control", "no-cache") // it has an ETag
		}
		p.write(w, shown, status, content)
	})
}

// unshared is the Cache-Control of a response that depends on the token in Authorization. A cache
// that ignores Vary must not give it to another client either.
const unshared = "private, no-store"

// keepPrivate sets the headers that keep a response out of the caches in front of the server.
func keepPrivate(h http.Header) {
	h.Set("Cache-Control", unshared)
	h.Add("Vary", "Authorization")
}

// refuse answers a denied request: outside the API, a browser gets a page.
func (p *site) refuse(w http.ResponseWriter, r *http.Request, denied limit.Problem) {
	if strings.HasPrefix(r.URL.Path, "/v1/") ||
		!strings.Contains(r.Header.Get("Accept"), "text/html") {
		denied.Write(w)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	p.write(w, p.failed, denied.Status,
		page{Title: denied.Title, Body: denied.Detail, Now: time.Now()})
}

func (p *site) write(w http.ResponseWriter, layout *template.Template, status int, content page) {
	var out bytes.Buffer
	if err := layout.ExecuteTemplate(&out, "layout.html", content); err != nil {
		p.Log.Error("cannot write page", "page", content.Title, "error", err)
		http.Error(w, "this page cannot be shown", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	w.Write(out.Bytes())
}

func (p *site) parse(name string) *template.Template {
	return template.Must(template.New(name).Funcs(functions).ParseFS(templateFiles,
		"templates/layout.html", "templates/parts.html", "templates/"+name+".html"))
}

func (p *site) private(r *http.Request) bool {
	return p.mayReadPrivate(r.Header.Get("Authorization"))
}

// mayRead returns an error unless the client may see budgets, log and plan.
func (p *site) mayRead(r *http.Request) error {
	if p.private(r) {
		return nil
	}
	return huma.Error401Unauthorized("this page needs a token of token_file, as the password")
}

//go:embed static/*
var staticFiles embed.FS

// asset returns the path of a static file, which changes with its content.
func asset(name string) string {
	data, err := staticFiles.ReadFile("static/" + name)
	if err != nil {
		return "/static/" + name
	}
	sum := sha256.Sum256(data)
	return "/static/" + name + "?v=" + hex.EncodeToString(sum[:6])
}

func static(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if strings.Contains(name, "/") { // from an escaped slash, as in ..%2f
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "max-age=86400")
	http.ServeFileFS(w, r, staticFiles, "static/"+name)
}
