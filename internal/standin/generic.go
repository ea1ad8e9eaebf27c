package standin

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// generic is an API like many: every path answers, a request is a request, and the answer says in
// X-Request-Cost how many units it took, which the caller chooses (?cost=7).
var generic = api{
	limits: map[string][]Limit{
		"requests": {{Units: 100, Window: time.Minute}},
		"units":    nil,
	},
	key: func(r *http.Request) string {
		if key := r.Header.Get("X-Api-Key"); key != "" {
			return key
		}
		return bearer(r)
	},
	serve:  serveGeneric,
	fail:   failGeneric,
	deny:   denyGeneric,
	failed: func(*call) string { return "requests" },
}

func serveGeneric(c *call) {
	units := int64(1)
	if text := c.r.URL.Query().Get("cost"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n > maxUnits/1_000_000 {
			c.countRequest()
			c.fail(http.StatusBadRequest, "cost is not a number from 0")
			return
		}
		units = n
	}
	if strings.HasPrefix(c.r.URL.Path, "/missing") {
		c.countRequest()
		c.fail(http.StatusNotFound, "no such resource")
		return
	}
	if !c.admit(one("requests", 1), one("units", units)) {
		return
	}
	c.genericHeaders()
	doc := map[string]any{"method": c.r.Method, "path": c.r.URL.Path, "bytes": len(c.body)}
	if c.fault != "no-usage" {
		c.header("X-Request-Cost", strconv.FormatInt(units, 10))
		doc["usage"] = map[string]any{"units": units}
	}
	c.json(http.StatusOK, doc)
}

// genericHeaders say when the window ends, in seconds from now.
func (c *call) genericHeaders() {
	if g, ok := c.gauge("requests", 0); ok {
		c.tell("X-Ratelimit-Limit", strconv.FormatInt(g.limit, 10))
		c.tell("X-Ratelimit-Used", strconv.FormatInt(g.used, 10))
		c.tell("X-Ratelimit-Remaining", c.left(g))
		c.tell("X-Ratelimit-Reset", strconv.FormatInt(seconds(g.reset.Sub(c.now)), 10))
	}
}

func failGeneric(c *call, status int, message string) {
	c.json(status, map[string]any{"error": map[string]any{"status": status, "message": message}})
}

func denyGeneric(c *call, d denial) {
	c.genericHeaders()
	if !d.until.IsZero() {
		c.retryAfter(d.until)
	}
	c.json(http.StatusTooManyRequests, map[string]any{"error": map[string]any{
		"status": http.StatusTooManyRequests, "code": "rate_limited", "bucket": d.bucket,
		"message": "too many requests"}})
}
