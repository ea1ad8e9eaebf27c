package standin

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// xRoutes count requests by endpoint. They bill money for each post and user in a response, and for
// each created post, more if it has a link. The real API bills a resource once a day; these routes,
// like the price list, count each read.
var xRoutes = []route{
	{"GET /2/tweets", xResources("post", "named"), "x.tweets.lookup"},
	{"POST /2/tweets", (*call).create, "x.tweets.create"},
	{"GET /2/tweets/search/recent", xResources("post", "listed"), "x.tweets.search"},
	{"GET /2/tweets/{id}", xResources("post", "one"), "x.tweets.get"},
	{"GET /2/users", xResources("user", "named"), "x.users.lookup"},
	{"GET /2/users/by/username/{name}", xResources("user", "one"), "x.users.byusername"},
	{"GET /2/users/{id}", xResources("user", "one"), "x.users.get"},
	{"GET /2/users/{id}/tweets", xResources("post", "listed"), "x.users.tweets"},
	{"GET /2/users/{id}/followers", xResources("user", "listed"), "x.users.list"},
	{"GET /2/users/{id}/liked_tweets", xResources("post", "listed"), "x.posts.list"},
	{"POST /2/users/{id}/likes", xWrite("interact"), "x.users.interact"},
	{"DELETE /2/tweets/{id}", xWrite("delete"), "x.delete"},
	{"GET /2/usage/tweets", (*call).xUsage, "x.usage"},
}

// admitX bills a request, n objects of a kind, and more millionths of a dollar.
func (c *call) admitX(kind string, n int, more float64) {
	c.admit(one(c.bucket("requests"), 1), paid(c.price(kind, int64(n))+more))
}

// xIDs returns the IDs of the objects in a response: those that the request names, a generated
// list, or the one in the path.
func (c *call) xIDs(which string) (ids []string) {
	q := c.r.URL.Query()
	switch which {
	case "named":
		if ids = strings.Split(q.Get("ids"), ","); len(ids) > 100 || ids[0] == "" {
			c.fail("wrong ids", nil)
		}
	case "listed":
		n, err := strconv.Atoi(cmp.Or(q.Get("max_results"), "10"))
		if err != nil || n < 5 || n > 100 {
			c.fail("wrong max_results", nil)
		}
		for i := range min(n, c.s.Rows) {
			ids = append(ids, strconv.FormatUint(c.hash()%1e12*1000+uint64(i), 10))
		}
	default:
		ids = c.match[1:]
	}
	return ids
}

// xResources returns a handler that sends posts or users.
func xResources(kind, which string) func(*call) {
	return func(c *call) {
		ids := c.xIDs(which)
		resources := func(kind, prefix string) (all []any) {
			for _, id := range ids {
				all = append(all, c.doc(kind, object{"post": prefix + id}))
			}
			return all
		}
		data := resources(kind, "")
		doc, authors := object{"data": data}, 0.0
		switch which {
		case "one":
			doc["data"] = data[0]
		case "listed":
			doc["meta"] = object{"result_count": len(ids), "newest_id": ids[0],
				"oldest_id": ids[len(ids)-1]}
		}
		expansions := c.r.URL.Query().Get("expansions")
		if kind == "post" && strings.Contains(expansions, "author_id") {
			doc["includes"] = object{"users": resources("user", "9")}
			authors = c.price("user", int64(len(ids)))
		}
		c.admitX(kind, len(ids), authors)
		if kind == "post" {
			c.s.Use(c.now.UTC().Format(time.DateOnly), "", "posts", float64(len(ids)))
		}
		c.ok(doc)
	}
}

func xWrite(price string) func(*call) {
	return func(c *call) {
		c.admitX(price, 1, 0)
		c.ok(object{"data": object{"deleted": true}})
	}
}

func (c *call) create() {
	var q struct {
		Text string `json:"text"`
	}
	c.parse(&q)
	if q.Text == "" {
		c.fail("no text", nil)
	}
	kind := "create"
	if strings.Contains(q.Text, "http://") || strings.Contains(q.Text, "https://") {
		kind = "link"
	}
	c.admitX(kind, 1, 0)
	id := decimal(1_900_000_000_000 + c.number)
	c.json(http.StatusCreated, object{"data": object{"id": id, "text": q.Text,
		"edit_history_tweet_ids": []string{id}}})
}

// xUsage serves the number of posts on each of the last days.
func (c *call) xUsage() {
	n, err := strconv.Atoi(cmp.Or(c.r.URL.Query().Get("days"), "7"))
	if err != nil || n < 1 || n > 90 {
		c.fail("wrong days", nil)
	}
	c.admit(one(c.bucket("requests"), 1))
	usage := []any{}
	c.days(c.now.AddDate(0, 0, 1-n), c.now, func(day time.Time) {
		usage = append(usage, object{"date": day.Format("2006-01-02T15:04:05.000Z"),
			"usage": strconv.FormatFloat(c.billedOn(day)[""]["posts"], 'f', -1, 64)})
	})
	c.ok(c.doc("usage", object{"usage": usage}))
}
