package standin

import (
	"cmp"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// xRoute is an endpoint by its path, as of path.Match.
type xRoute struct{ method, path, endpoint, kind string }

// xRoutes list the endpoints. kind is what the response holds: posts or users, by ID, in a list or
// one; for others it is the price.
var xRoutes = []xRoute{
	{"GET", "/2/tweets", "x.tweets.lookup", "posts by id"},
	{"POST", "/2/tweets", "x.tweets.create", "create"},
	{"GET", "/2/tweets/search/recent", "x.tweets.search", "posts in a list"},
	{"GET", "/2/tweets/?*", "x.tweets.get", "one post"},
	{"GET", "/2/users", "x.users.lookup", "users by id"},
	{"GET", "/2/users/by/username/?*", "x.users.byusername", "one user"},
	{"GET", "/2/users/?*", "x.users.get", "one user"},
	{"GET", "/2/users/?*/tweets", "x.users.tweets", "posts in a list"},
	{"GET", "/2/users/?*/followers", "x.users.list", "users in a list"},
	{"GET", "/2/users/?*/liked_tweets", "x.posts.list", "posts in a list"},
	{"POST", "/2/users/?*/likes", "x.users.interact", "interact"},
	{"DELETE", "/2/tweets/?*", "x.delete", "delete"},
	{"GET", "/2/usage/tweets", "x.usage", "usage"},
}

// xRoute returns the route of the request, or the zero one.
func (c *call) xRoute() xRoute {
	for _, r := range xRoutes {
		if ok, _ := path.Match(r.path, c.r.URL.Path); ok && r.method == c.r.Method {
			return r
		}
	}
	return xRoute{}
}

func xBucket(c *call, name string) string { return part(name, c.xRoute().endpoint) }

// serveX counts requests by endpoint. It bills money for each post and user of a response, and for
// each post that is created, more for one with a link. The real API bills a resource once a day;
// the price list books each read, and so does this.
func serveX(c *call) {
	route := c.xRoute()
	var ids []string
	switch what, how, _ := strings.Cut(route.kind, " "); {
	case route.endpoint == "":
		c.fail(http.StatusNotFound, "Could not find that path.")
		return
	case what == "create":
		c.create(route.endpoint)
		return
	case how == "":
		if c.admit(one(part("requests", route.endpoint), 1), paid(c.price(what, 1))) {
			c.report()
			c.ok(object{"data": object{"deleted": true}})
		}
		return
	case how == "by id":
		if ids = strings.Split(c.r.URL.Query().Get("ids"), ","); len(ids) > 100 || ids[0] == "" {
			c.invalid("The `ids` query parameter must have 1 to 100 ids")
			return
		}
	case how == "in a list":
		n, err := strconv.Atoi(cmp.Or(c.r.URL.Query().Get("max_results"), "10"))
		if err != nil || n < 5 || n > 100 {
			c.invalid("The `max_results` query parameter value is not between 5 and 100")
			return
		}
		for i := range min(n, c.s.Rows) {
			ids = append(ids, strconv.FormatUint(c.hash()%1e12*1000+uint64(i), 10))
		}
	default:
		ids = []string{path.Base(c.r.URL.Path)}
	}
	var authors []string
	users := strings.Contains(route.kind, "user")
	if !users && strings.Contains(c.r.URL.Query().Get("expansions"), "author_id") {
		for _, id := range ids {
			authors = append(authors, "9"+id)
		}
	}
	kind := "post"
	if users {
		kind = "user"
	}
	worth := c.price(kind, int64(len(ids))) + c.price("user", int64(len(authors)))
	if !c.admit(one(part("requests", route.endpoint), 1), paid(worth)) {
		return
	}
	if !users {
		c.record("", "posts", float64(len(ids)))
	}
	c.report()
	c.ok(c.xDocument(route, ids, authors))
}

func (c *call) xDocument(route xRoute, ids, authors []string) object {
	resource := "post"
	if strings.Contains(route.kind, "user") {
		resource = "user"
	}
	var data, included []any
	for _, id := range ids {
		data = append(data, c.doc(resource, object{"post": id}))
	}
	for _, id := range authors {
		included = append(included, c.doc("user", object{"post": id}))
	}
	doc := object{"data": data}
	if strings.HasPrefix(route.kind, "one ") {
		doc["data"] = data[0]
	}
	if route.kind == "posts in a list" {
		doc["meta"] = object{"result_count": len(ids), "newest_id": ids[0],
			"oldest_id": ids[len(ids)-1]}
	}
	if included != nil {
		doc["includes"] = object{"users": included}
	}
	return doc
}

func (c *call) create(endpoint string) {
	var q struct {
		Text string `json:"text"`
	}
	if !c.parse(&q) {
		return
	}
	if q.Text == "" {
		c.invalid("text is missing")
		return
	}
	kind := "create"
	if strings.Contains(q.Text, "http://") || strings.Contains(q.Text, "https://") {
		kind = "link"
	}
	if !c.admit(one(part("requests", endpoint), 1), paid(c.price(kind, 1))) {
		return
	}
	c.report()
	id := decimal(1_900_000_000_000 + c.number)
	c.json(http.StatusCreated, object{"data": object{"id": id, "text": q.Text,
		"edit_history_tweet_ids": []string{id}}})
}
