package standin

import (
	"fmt"
	"net/http"
	"strings"
)

func (c *call) isGraph() bool {
	return c.r.URL.Path == "/graphql" || c.r.URL.Path == "/api/graphql"
}

// serveGitHub counts requests of its REST API and points of GraphQL, an hour from the first request
// on, and has further limits against bursts. A 304 Not Modified is free.
func serveGitHub(c *call) {
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
func (c *call) githubResource(string) string {
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

func (c *call) rateLimit() {
	resources := object{}
	for _, name := range []string{"core", "graphql", "search", "code_search"} {
		if g, ok := c.gauge(name, 0); ok {
			resources[name] = c.doc("limit", c.values(g))
		}
	}
	c.report()
	c.ok(object{"resources": resources, "rate": resources["core"]})
}

func (c *call) githubREST() {
	write := c.r.Method != http.MethodGet && c.r.Method != http.MethodHead
	tag := fmt.Sprintf(`W/"%016x"`, c.hash())
	resource := c.githubResource("")
	if !write && c.r.Header.Get("If-None-Match") == tag {
		c.report()
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
	c.report()
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
	path := strings.Trim(c.r.URL.Path, "/")
	return c.doc("resource", object{"number": c.hash()%1_000_000 + uint64(i), "path": path,
		"name": path[strings.LastIndexByte(path, '/')+1:], "rank": i + 1})
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
	c.report()
	given := object{}
	for _, f := range op.fields {
		if f.name == "rateLimit" && c.fault != "no-usage" {
			g, _ := c.gauge("graphql", 0)
			given["rateLimit"] = c.graphData(f.below, object{"limit": g.limit, "cost": points,
				"remaining": g.left, "used": g.used, "nodeCount": nodes,
				"resetAt": rfc3339(g.reset)}, "")
		}
	}
	c.ok(object{"data": c.graphData(op.fields, given, "data")})
}

func (c *call) graphError(kind, message string) {
	c.report()
	c.ok(c.doc("error", object{"kind": kind, "message": message}))
}
