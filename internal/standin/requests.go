package standin

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// requestAPI returns an API that counts requests alone, each in the bucket of its path and body.
// It answers every path with the same document.
func requestAPI(limits map[string][]Limit, bucket func(*call) string, doc object,
	wrong func(status int, message string) (int, object)) api {
	return api{
		limits: limits,
		key:    bearer,
		serve: func(c *call) {
			if c.admit(one(bucket(c), 1)) {
				c.requestHeaders()
				c.ok(doc)
			}
		},
		fail: func(c *call, status int, message string) {
			status, doc := wrong(status, message)
			c.json(status, doc)
		},
		deny: func(c *call, d denial) {
			c.requestHeaders()
			c.retryAfter(d.until)
			_, doc := wrong(http.StatusTooManyRequests, "rate_limited")
			c.json(http.StatusTooManyRequests, doc)
		},
		failed: bucket,
	}
}

func requests(*call) string { return "requests" }

var notion = requestAPI(map[string][]Limit{"requests": {{Units: 180, Window: time.Minute}}}, requests,
	object{"object": "list", "results": []any{}, "has_more": false, "next_cursor": nil},
	func(status int, message string) (int, object) {
		return status, object{"object": "error", "status": status, "code": message, "message": message}
	})

var reddit = requestAPI(map[string][]Limit{"requests": {{Units: 1000, Window: 10 * time.Minute}}},
	requests, object{"kind": "Listing", "data": object{"children": []any{}, "after": nil}},
	func(status int, message string) (int, object) {
		return status, object{"message": message, "error": status}
	})

// slack counts each method by itself, and the messages of each channel.
var slack = requestAPI(map[string][]Limit{"tier2": {{Units: 20, Window: time.Minute}},
	"tier3": {{Units: 50, Window: time.Minute}}, "tier4": {{Units: 100, Window: time.Minute}},
	"messages": {{Units: 60, Window: time.Minute}}, "special": nil}, slackBucket,
	object{"ok": true, "members": []any{}, "messages": []any{}, "ts": "1.1"},
	func(status int, message string) (int, object) {
		if status == http.StatusUnauthorized {
			return http.StatusOK, object{"ok": false, "error": "invalid_auth"}
		}
		return status, object{"ok": false, "error": strings.ReplaceAll(message, "rate_l", "ratel")}
	})

var slackTiers = map[string]string{"conversations.history": "tier3", "users.info": "tier4",
	"auth.test": "special", "chat.postmessage": "messages"}

func slackBucket(c *call) string {
	method := strings.ToLower(strings.TrimPrefix(c.r.URL.Path, "/api/"))
	switch tier := slackTiers[method]; tier {
	case "":
		return "tier2/" + method
	case "special":
		return tier
	case "messages":
		var q struct{ Channel string }
		if json.Unmarshal(c.body, &q) != nil {
			form, _ := url.ParseQuery(string(c.body))
			q.Channel = form.Get("channel")
		}
		return tier + "/" + strings.ToLower(q.Channel)
	default:
		return tier + "/" + method
	}
}

// requestHeaders reports Reddit's limit, and when its window ends, in seconds.
func (c *call) requestHeaders() {
	if g, ok := c.gauge("requests", 0); ok && c.s.name == "reddit" {
		c.report("X-Ratelimit-Used", decimal(g.used), "X-Ratelimit-Remaining", c.left(g)+".0",
			"X-Ratelimit-Reset", decimal(seconds(g.reset.Sub(c.now))))
	}
}
