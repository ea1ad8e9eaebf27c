package standin

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// x counts requests by endpoint, and takes money for each post and user that an answer has, once a
// day in UTC, and for each post that is made, more for one with a link.
var x = api{
	limits: map[string][]Limit{
		"requests": {{Units: 300, Window: 15 * time.Minute}},
		money:      nil,
	},
	prices: map[string]float64{"post": 5_000, "user": 10_000, "create": 15_000, "link": 200_000,
		"interact": 15_000, "delete": 10_000},
	key:   bearer,
	serve: serveX,
	fail:  failX,
	deny:  denyX,
	failed: func(c *call) string {
		if e := c.endpoint(); e != "" {
			return part("requests", e)
		}
		return ""
	},
}

// xRoutes are the endpoints by their paths, where * is any one name.
var xRoutes = []struct{ route, endpoint string }{
	{"GET /2/tweets", "x.tweets.lookup"},
	{"POST /2/tweets", "x.tweets.create"},
	{"GET /2/tweets/search/recent", "x.tweets.search"},
	{"GET /2/tweets/*", "x.tweets.get"},
	{"GET /2/users", "x.users.lookup"},
	{"GET /2/users/by/username/*", "x.users.byusername"},
	{"GET /2/users/*", "x.users.get"},
	{"GET /2/users/*/tweets", "x.users.tweets"},
	{"GET /2/users/*/followers", "x.users.list"},
	{"GET /2/users/*/liked_tweets", "x.posts.list"},
	{"POST /2/users/*/likes", "x.users.interact"},
	{"DELETE /2/tweets/*", "x.delete"},
}

// endpoint is the name of the endpoint that is called, "" for none.
func (c *call) endpoint() string {
	got := strings.Split(c.r.Method+" "+c.r.URL.Path, "/")
	for _, r := range xRoutes {
		want := strings.Split(r.route, "/")
		same := len(want) == len(got)
		for i := 0; same && i < len(want); i++ {
			same = want[i] == got[i] || want[i] == "*" && got[i] != ""
		}
		if same {
			return r.endpoint
		}
	}
	return ""
}

// seen are the resources that were paid for today.
type seen struct {
	day string
	ids map[string]bool
}

const maxSeen = 100_000

// first reports whether a resource is seen for the first time today, and remembers it.
func (s *seen) first(now time.Time, id string) bool {
	if day := now.UTC().Format(time.DateOnly); day != s.day {
		s.day, s.ids = day, map[string]bool{}
	}
	if s.ids[id] {
		return false
	}
	if len(s.ids) < maxSeen {
		s.ids[id] = true
	}
	return true
}

func serveX(c *call) {
	endpoint := c.endpoint()
	posts, users, ok := []string(nil), []string(nil), true
	switch endpoint {
	case "":
		c.fail(http.StatusNotFound, "Could not find that path.")
		return
	case "x.tweets.create":
		c.create()
		return
	case "x.users.interact", "x.delete":
		price := c.price(endpoint[strings.LastIndexByte(endpoint, '.')+1:], 1)
		if c.admit(one(part("requests", endpoint), 1), paid(price)) {
			c.xHeaders(endpoint)
			c.json(http.StatusOK, map[string]any{"data": map[string]any{"deleted": true}})
		}
		return
	case "x.users.list":
		users, ok = c.found()
	case "x.users.lookup", "x.users.get", "x.users.byusername":
		users, ok = c.asked(endpoint == "x.users.lookup")
	case "x.tweets.lookup", "x.tweets.get":
		posts, ok = c.asked(endpoint == "x.tweets.lookup")
	default:
		posts, ok = c.found()
	}
	if !ok {
		return
	}
	var authors []string
	if strings.Contains(c.r.URL.Query().Get("expansions"), "author_id") && posts != nil {
		for _, id := range posts {
			authors = append(authors, "9"+id)
		}
	}
	all := append(append([]string{}, users...), authors...)
	worth, fresh := c.worth(posts, all)
	if !c.admit(one(part("requests", endpoint), 1), paid(worth)) {
		c.unseen(fresh)
		return
	}
	c.xHeaders(endpoint)
	c.json(http.StatusOK, c.xAnswer(endpoint, posts, users, authors))
}

// asked are the ids that a request names: in its path, or up to 100 in ?ids=.
func (c *call) asked(list bool) ([]string, bool) {
	if !list {
		return []string{c.r.URL.Path[strings.LastIndexByte(c.r.URL.Path, '/')+1:]}, true
	}
	ids := strings.Split(c.r.URL.Query().Get("ids"), ",")
	if len(ids) > 100 || ids[0] == "" {
		c.fail(http.StatusBadRequest, "The `ids` query parameter must have 1 to 100 ids")
		return nil, false
	}
	return ids, true
}

// found are the ids of a list: as many as ?max_results= asks for, but no more than there are.
func (c *call) found() ([]string, bool) {
	n, err := strconv.Atoi(cmp.Or(c.r.URL.Query().Get("max_results"), "10"))
	if err != nil || n < 5 || n > 100 {
		c.fail(http.StatusBadRequest, "The `max_results` query parameter value is not between 5 "+
			"and 100")
		return nil, false
	}
	ids := []string{}
	for i := range min(n, c.s.Rows) {
		ids = append(ids, strconv.FormatUint(c.hash()%1e12*1000+uint64(i), 10))
	}
	return ids, true
}

// worth is the money for the resources that are seen for the first time today, and which those are.
func (c *call) worth(posts, users []string) (sum float64, fresh []string) {
	defer c.s.locked()()
	for _, kind := range []struct {
		name string
		ids  []string
	}{{"post", posts}, {"user", users}} {
		for _, id := range kind.ids {
			if c.s.seen.first(c.now, kind.name+id) {
				sum += c.s.Prices[kind.name]
				fresh = append(fresh, kind.name+id)
			}
		}
	}
	return sum, fresh
}

// unseen forgets resources that were not delivered.
func (c *call) unseen(ids []string) {
	defer c.s.locked()()
	for _, id := range ids {
		delete(c.s.seen.ids, id)
	}
}

func (c *call) xHeaders(endpoint string) {
	if g, ok := c.gauge(part("requests", endpoint), 0); ok {
		c.tell("X-Rate-Limit-Limit", strconv.FormatInt(g.limit, 10))
		c.tell("X-Rate-Limit-Remaining", c.left(g))
		c.tell("X-Rate-Limit-Reset", strconv.FormatInt(g.reset.Unix(), 10))
	}
}

func xPost(id string) map[string]any {
	return map[string]any{"id": id, "text": "post " + id, "author_id": "9" + id,
		"edit_history_tweet_ids": []string{id}}
}

func xUser(id string) map[string]any {
	return map[string]any{"id": id, "name": "User " + id, "username": "user" + id}
}

func (c *call) xAnswer(endpoint string, posts, users, authors []string) map[string]any {
	var data []any
	for _, id := range posts {
		data = append(data, xPost(id))
	}
	for _, id := range users {
		data = append(data, xUser(id))
	}
	doc := map[string]any{"data": data}
	switch endpoint {
	case "x.tweets.get", "x.users.get", "x.users.byusername":
		doc["data"] = data[0]
	case "x.tweets.search", "x.users.tweets":
		doc["meta"] = map[string]any{"result_count": len(data)}
		if len(posts) > 0 {
			doc["meta"] = map[string]any{"result_count": len(data), "newest_id": posts[0],
				"oldest_id": posts[len(posts)-1]}
		}
	}
	if len(authors) > 0 {
		var list []any
		for _, id := range authors {
			list = append(list, xUser(id))
		}
		doc["includes"] = map[string]any{"users": list}
	}
	return doc
}

func (c *call) create() {
	var q struct {
		Text string `json:"text"`
	}
	if !c.parse(&q) {
		return
	}
	if q.Text == "" {
		c.fail(http.StatusBadRequest, "text is missing")
		return
	}
	kind := "create"
	if strings.Contains(q.Text, "http://") || strings.Contains(q.Text, "https://") {
		kind = "link"
	}
	if !c.admit(one(part("requests", "x.tweets.create"), 1), paid(c.price(kind, 1))) {
		return
	}
	c.xHeaders("x.tweets.create")
	id := strconv.FormatInt(1_900_000_000_000+c.number, 10)
	c.json(http.StatusCreated, map[string]any{"data": map[string]any{"id": id, "text": q.Text,
		"edit_history_tweet_ids": []string{id}}})
}

func failX(c *call, status int, message string) {
	title := map[int]string{400: "Invalid Request", 401: "Unauthorized",
		404: "Not Found Error"}[status]
	if status == http.StatusUnauthorized {
		message = "Unauthorized"
	}
	c.xProblem(status, cmp.Or(title, http.StatusText(status)), message, "about:blank", nil)
}

func (c *call) xProblem(status int, title, detail, kind string, more map[string]any) {
	doc := map[string]any{"title": title, "detail": detail, "type": kind, "status": status}
	for name, value := range more {
		doc[name] = value
	}
	c.json(status, doc)
}

func denyX(c *call, d denial) {
	if d.bucket == money {
		c.xProblem(http.StatusTooManyRequests, "UsageCapExceeded", "Usage cap exceeded: Monthly "+
			"product cap", "https://api.twitter.com/2/problems/usage-capped",
			map[string]any{"period": "Monthly", "scope": "Product", "account_id": 1})
		return
	}
	c.xHeaders(c.endpoint())
	const text = "Too Many Requests"
	c.xProblem(http.StatusTooManyRequests, text, text, "about:blank", map[string]any{
		"errors": []any{map[string]any{"code": 88, "message": "Rate limit exceeded"}}})
}
