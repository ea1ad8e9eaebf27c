package standin

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

// anyRequest sends the same document for every path, and bills only the request.
var anyRequest = []route{{".*", func(c *call) {
	c.admit(one(c.bucket(c.s.api.Failed), 1))
	c.ok(c.doc("reply", nil))
}, ""}}

// slackTiers are the buckets of methods. The bucket of other methods is tier2.
var slackTiers = map[string]string{"conversations.history": "tier3", "users.info": "tier4",
	"auth.test": "special", "chat.postmessage": "messages"}

// slackBucket returns the part of a bucket for the request's method or, for messages, for its
// channel.
func slackBucket(c *call, _ string) string {
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

// genericRoutes serve every path, and count requests and units. The client sets the units
// (?cost=7), and the response reports them in X-Request-Cost.
var genericRoutes = []route{{".*", (*call).generic, ""}}

func (c *call) generic() {
	units := int64(1)
	if text := c.r.URL.Query().Get("cost"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n > maxUnits/1_000_000 {
			c.countRequest()
			c.fail("wrong cost", nil)
		}
		units = n
	}
	if strings.HasPrefix(c.r.URL.Path, "/missing") {
		c.countRequest()
		c.fail("404", nil)
	}
	c.admit(one("requests", 1), one("units", units))
	if c.fault != "no-usage" {
		c.header("X-Request-Cost", decimal(units))
	}
	c.ok(c.doc("reply", object{"bytes": len(c.body), "units": units}))
}
