package standin

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// github counts requests of its REST API and points of GraphQL, an hour from the first request on,
// and has further limits against bursts. An answer that was not modified is free.
var github = api{
	limits: map[string][]Limit{
		"core":           {{Units: 5_000, Window: time.Hour}},
		"graphql":        {{Units: 5_000, Window: time.Hour}},
		"search":         {{Units: 30, Window: time.Minute}},
		"code_search":    {{Units: 10, Window: time.Minute}},
		"points":         {{Units: 900, Window: time.Minute}},
		"graphql_points": {{Units: 2_000, Window: time.Minute}},
		"writes":         {{Units: 80, Window: time.Minute}, {Units: 500, Window: time.Hour}},
		"concurrent":     {{Units: 100}},
	},
	key:    bearer,
	serve:  serveGitHub,
	fail:   failGitHub,
	deny:   denyGitHub,
	failed: (*call).githubResource,
}

func (c *call) isGraph() bool {
	return c.r.URL.Path == "/graphql" || c.r.URL.Path == "/api/graphql"
}

func serveGitHub(c *call) {
	c.header("X-Github-Request-Id", c.id(""))
	c.header("X-Github-Media-Type", "github.v3; format=json")
	switch {
	case c.isGraph() && c.r.Method == http.MethodPost:
		c.githubGraph()
	case c.r.URL.Path == "/rate_limit":
		c.rateLimit()
	default:
		c.githubREST()
	}
}

// githubResource returns the resource that a request counts against.
func (c *call) githubResource() string {
	switch path := c.r.URL.Path; {
	case c.isGraph():
		return "graphql"
	case path == "/search/code":
		return "code_search"
	case strings.HasPrefix(path, "/search/"):
		return "search"
	}
	return "core"
}

// githubHeaders reports what is left of a resource.
func (c *call) githubHeaders(resource string) {
	if g, ok := c.gauge(resource, 0); ok {
		c.report("X-Ratelimit-Limit", decimal(g.limit), "X-Ratelimit-Remaining", c.left(g),
			"X-Ratelimit-Used", decimal(g.used), "X-Ratelimit-Reset", decimal(g.reset.Unix()))
		c.header("X-Ratelimit-Resource", resource)
	}
}

func (c *call) rateLimit() {
	resources := object{}
	for _, name := range []string{"core", "graphql", "search", "code_search"} {
		if g, ok := c.gauge(name, 0); ok {
			resources[name] = object{"limit": g.limit, "used": g.used,
				"remaining": g.left, "reset": g.reset.Unix(), "resource": name}
		}
	}
	c.githubHeaders("core")
	c.ok(object{"resources": resources, "rate": resources["core"]})
}

func (c *call) githubREST() {
	write := c.r.Method != http.MethodGet && c.r.Method != http.MethodHead
	tag := fmt.Sprintf(`W/"%016x"`, c.hash())
	resource := c.githubResource()
	if !write && c.r.Header.Get("If-None-Match") == tag {
		c.githubHeaders(resource)
		c.header("Etag", tag)
		c.w.WriteHeader(http.StatusNotModified)
		return
	}
	costs := []cost{one(resource, 1), under("concurrent"), one("points", 1)}
	if write {
		costs[2] = one("points", 5)
		costs = append(costs, one("writes", 1))
	}
	if !c.admit(costs...) {
		return
	}
	c.githubHeaders(resource)
	if strings.Contains(c.r.URL.Path, "/missing") {
		c.fail(http.StatusNotFound, "Not Found")
		return
	}
	if !write {
		c.header("Etag", tag)
	}
	switch {
	case c.r.Method == http.MethodDelete:
		c.w.WriteHeader(http.StatusNoContent)
	case c.r.Method == http.MethodPost:
		c.json(http.StatusCreated, c.resource(0))
	case !write && strings.HasSuffix(c.r.URL.Path, "s"):
		list := []any{}
		for i := range c.s.Rows {
			list = append(list, c.resource(i))
		}
		c.ok(list)
	default:
		c.ok(c.resource(0))
	}
}

// resource returns the i-th thing at the path of the request.
func (c *call) resource(i int) object {
	name := c.r.URL.Path[strings.LastIndexByte(c.r.URL.Path, '/')+1:]
	return object{"id": c.hash()%1_000_000 + uint64(i), "node_id": c.id(""), "name": name,
		"full_name": strings.Trim(c.r.URL.Path, "/"), "number": i + 1, "title": "a title",
		"state": "open", "url": "https://api.github.com" + c.r.URL.Path}
}

const maxNodes = 500_000

// githubPoints returns the points of a query: the requests that its connections would need, one
// for each of their parents, divided by 100, at least 1. nodes is the most that it could return,
// excess the error of a connection with too many.
func githubPoints(fields []field) (points, nodes int64, excess string) {
	var requests int64
	var walk func(fields []field, parents int64)
	walk = func(fields []field, parents int64) {
		for _, f := range fields {
			n := f.size
			if !f.connection {
				walk(f.below, parents)
				continue
			}
			if n < 1 || n > 100 {
				excess = fmt.Sprintf("Requesting %d records on the `%s` connection exceeds the "+
					"`first` limit of 100 records.", n, f.name)
				return
			}
			requests = min(maxUnits, requests+parents)
			nodes = min(maxUnits, nodes+parents*n)
			walk(f.below, min(maxUnits, parents*n))
		}
	}
	walk(fields, 1)
	return max(1, (requests+50)/100), nodes, excess
}

func (c *call) githubGraph() {
	op, ok := c.readGraph()
	if !ok {
		return
	}
	points, nodes, excess := githubPoints(op.fields)
	switch {
	case excess != "":
		c.count(&c.s.counts.Failed)
		c.graphError("EXCESSIVE_PAGINATION", excess)
		return
	case nodes > maxNodes:
		c.count(&c.s.counts.Failed)
		c.graphError("MAX_NODE_LIMIT_EXCEEDED", fmt.Sprintf("This query requests up to %d "+
			"possible nodes which exceeds the maximum limit of 500,000.", nodes))
		return
	}
	costs := []cost{one("graphql", points), under("concurrent"), one("graphql_points", 1)}
	if op.mutation {
		costs[2] = one("graphql_points", 5)
		costs = append(costs, one("writes", 1))
	}
	if !c.admit(costs...) {
		return
	}
	c.githubHeaders("graphql")
	known := object{}
	for _, f := range op.fields {
		if f.name == "rateLimit" && c.fault != "no-usage" {
			g, _ := c.gauge("graphql", 0)
			known["rateLimit"] = c.made(f.below, object{"limit": g.limit, "cost": points,
				"remaining": g.left, "used": g.used, "nodeCount": nodes,
				"resetAt": rfc3339(g.reset)}, "")
		}
	}
	c.ok(object{"data": c.made(op.fields, known, "data")})
}

func (c *call) graphError(kind, message string) {
	c.githubHeaders("graphql")
	c.ok(object{"data": nil, "errors": []any{object{"type": kind, "message": message}}})
}

const githubDocs = "https://docs.github.com/rest"

func failGitHub(c *call, status int, message string) {
	if status == http.StatusUnauthorized {
		message = "Bad credentials"
	}
	c.json(status, object{"message": message, "documentation_url": githubDocs,
		"status": strconv.Itoa(status)})
}

func denyGitHub(c *call, d denial) {
	const message = "API rate limit already exceeded for user ID 1."
	resource := c.githubResource()
	c.githubHeaders(resource)
	switch {
	case d.bucket == resource && c.isGraph():
		c.graphError("RATE_LIMITED", message)
	case d.bucket == resource:
		failGitHub(c, http.StatusForbidden, message)
	default:
		c.retryAfter(d.until)
		failGitHub(c, http.StatusForbidden, "You have exceeded a secondary rate limit. Please "+
			"wait a few minutes before you try again.")
	}
}
