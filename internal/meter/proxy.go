package meter

import (
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"

	"quotabudget/internal/quota"
)

// Proxy forwards requests to the upstream through a Transport, so that a program in any language is metered by pointing it here.
// A key that the program sends is dropped; the Transport adds its own. A denial is 429 with Retry-After, as problem+json.
func Proxy(t *Transport, upstream *url.URL) http.Handler {
	return &httputil.ReverseProxy{
		Transport: t,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream)
			query := r.Out.URL.Query()
			for _, name := range secretParams() {
				query.Del(name)
			}
			r.Out.URL.RawQuery = query.Encode()
			r.Out.Header.Del(keyHeader)
			r.Out.Header.Del("Authorization")
		},
		ErrorHandler: refuse,
		ErrorLog:     slog.NewLogLogger(t.Log.Handler(), slog.LevelWarn),
	}
}

// problem is an RFC 9457 problem document.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Limit  string `json:"limit,omitempty"`
	Retry  string `json:"retry_at,omitempty"`
}

// refuse tells the program why its request was not sent.
func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	p := problem{Type: "about:blank", Title: "upstream cannot be reached", Status: http.StatusBadGateway, Detail: err.Error()}
	denied, exhausted := errors.AsType[*quota.DeniedError](err)
	switch {
	case exhausted:
		p.Title, p.Status, p.Limit = "quota exhausted", http.StatusTooManyRequests, denied.Decision.Limit
		if p.Limit == quota.PaceName {
			p.Title = "held back by the pace"
		}
		p.Retry = denied.Decision.RetryAt.UTC().Format("2006-01-02T15:04:05.000000Z")
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(denied.Decision.RetryAfter().Seconds()))))
	case errors.Is(err, quota.ErrCostExceedsLimit):
		p.Title, p.Status = "cost exceeds the limit", http.StatusUnprocessableEntity
	case errors.Is(err, quota.ErrUnpriced):
		p.Title, p.Status = "method has no price", http.StatusNotFound
		p.Detail += ": quotactl costs lists the methods with their paths"
	case errors.Is(err, quota.ErrNoBucket):
		p.Title, p.Status = "bucket has no limit", http.StatusNotFound
	case errors.Is(err, quota.ErrUnreachable), errors.Is(err, quota.ErrLedgerUnusable):
		p.Title, p.Status = "ledger cannot be reached", http.StatusServiceUnavailable
	case errors.Is(err, quota.ErrNotSent):
		p.Title, p.Status = "request was not sent", http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	json.NewEncoder(w).Encode(p)
}
