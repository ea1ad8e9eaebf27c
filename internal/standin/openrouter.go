package standin

import (
	"net/http"
	"time"
)

// openRouter answers chats as openai does, for models of many vendors, with their cost in the
// usage, and reports what its key has spent today.
var openRouter = api{
	limits:  map[string][]Limit{"requests": {{Units: 500, Window: time.Minute}}, money: nil},
	prices:  map[string]float64{"input": 0, "cached": 0, "output": 0, "written": 0, "search": 0},
	refills: true,
	key:     bearer,
	serve:   serveOpenRouter,
	fail: func(c *call, status int, message string) {
		c.json(status, object{"error": object{"code": status, "message": message}})
	},
	deny: denyOpenRouter,
}

func serveOpenRouter(c *call) {
	switch c.r.Method + " " + c.r.URL.Path {
	case "POST /api/v1/chat/completions":
		c.chat()
	case "GET /api/v1/key":
		if !c.lost() {
			c.openRouterKey()
		}
	default:
		c.fail(http.StatusNotFound, "Not Found")
	}
}

// openRouterKey serves what the key has spent, in dollars, by day, week and month of UTC.
func (c *call) openRouterKey() {
	dollars := func(days int) (sum float64) {
		for i := range days {
			for _, of := range c.on(c.now.UTC().AddDate(0, 0, -i)) {
				sum += of[money]
			}
		}
		return sum / 1e6
	}
	c.ok(object{"data": object{"label": "sk-or-v1-...", "limit": nil, "limit_remaining": nil,
		"limit_reset": nil, "is_free_tier": false, "usage": dollars(31), "usage_daily": dollars(1),
		"usage_weekly":  dollars(1 + (int(c.now.UTC().Weekday())+6)%7),
		"usage_monthly": dollars(c.now.UTC().Day()), "byok_usage": 0}})
}

func denyOpenRouter(c *call, d denial) {
	status := http.StatusTooManyRequests
	if d.bucket == money {
		status = http.StatusPaymentRequired
	} else {
		c.retryAfter(d.until)
	}
	c.json(status, object{"error": object{"code": status, "message": "Rate limit exceeded: " +
		d.limit.String()}})
}
