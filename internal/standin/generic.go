package standin

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// generic counts requests and units. Every path answers. The caller chooses the units (?cost=7),
// and the response reports them in X-Request-Cost.
var generic = api{
	limits: map[string][]Limit{
		"requests": {{Units: 100, Window: time.Minute}},
		"units":    nil,
	},
	key:    func(r *http.Request) string { return cmp.Or(r.Header.Get("X-Api-Key"), bearer(r)) },
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
			c.invalid("cost is not a number from 0")
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
	doc := object{"method": c.r.Method, "path": c.r.URL.Path, "bytes": len(c.body)}
	if c.fault != "no-usage" {
		c.header("X-Request-Cost", decimal(units))
		doc["usage"] = object{"units": units}
	}
	c.ok(doc)
}

// genericHeaders reports the limit, with the seconds until its window ends.
func (c *call) genericHeaders() {
	if g, ok := c.gauge("requests", 0); ok {
		c.report("X-Ratelimit-Limit", decimal(g.limit), "X-Ratelimit-Used", decimal(g.used),
			"X-Ratelimit-Remaining", c.left(g),
			"X-Ratelimit-Reset", decimal(seconds(g.reset.Sub(c.now))))
	}
}

func failGeneric(c *call, status int, message string) {
	c.json(status, object{"error": object{"status": status, "message": message}})
}

func denyGeneric(c *call, d denial) {
	c.genericHeaders()
	if !d.until.IsZero() {
		c.retryAfter(d.until)
	}
	c.json(http.StatusTooManyRequests, object{"error": object{
		"status": http.StatusTooManyRequests, "code": "rate_limited", "bucket": d.bucket,
		"message": "too many requests"}})
}
