package standin

import (
	"fmt"
	"net/http"
	"strings"
)

// githubRoutes count requests of GitHub's REST API and points of GraphQL per hour, beginning with
// the first request, and limit bursts. The part of a route is the resource that its requests count
// against.
var githubRoutes = []route{
	{"POST (?:/api)?/graphql", (*call).githubGraph, "graphql"},
	{".* (?:/api)?/graphql", (*call).githubREST, "graphql"},
	{".* /rate_limit", func(c *call) {
		c.report()
		c.ok(c.doc("rate_limit", nil))
	}, "core"},
	{".* /search/code", (*call).githubREST, "code_search"},
	{".* /search/.*", (*call).githubREST, "search"},
	{".*", (*call).githubREST, "core"},
}

// githubResource returns the route's resource in place of core.
func githubResource(c *call, name string) string {
	if name == "core" {
		return c.route.part
	}
	return name
}

// githubREST serves the REST API. A 304 Not Modified is free.
func (c *call) githubREST() {
	write := c.r.Method != http.MethodGet && c.r.Method != http.MethodHead
	tag := fmt.Sprintf(`W/"%016x"`, c.hash())
	if !write && c.r.Header.Get("If-None-Match") == tag {
		c.report()
		c.header("Etag", tag)
		c.w.WriteHeader(http.StatusNotModified)
		return
	}
	c.admitGitHub(1, "points", write)
	if strings.Contains(c.r.URL.Path, "/missing") {
		c.fail("404", nil)
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

// admitGitHub bills units of the route's resource, and charges the limits against bursts.
func (c *call) admitGitHub(units int64, points string, write bool) {
	costs := []cost{one(c.route.part, units), under("concurrent")}
	if write {
		costs = append(costs, one(points, 5), one("writes", 1))
	} else {
		costs = append(costs, one(points, 1))
	}
	c.admit(costs...)
}

// resource returns the i-th object at the path of the request.
func (c *call) resource(i int) object {
	path := strings.Trim(c.r.URL.Path, "/")
	return c.doc("resource", object{"number": c.hash()%1_000_000 + uint64(i), "path": path,
		"name": path[strings.LastIndexByte(path, '/')+1:], "rank": i + 1})
}

const maxNodes = 500_000

// githubPoints returns the points of a query: the number of requests that its connections would
// need, one for each parent object, divided by 100, at least 1. nodes is the maximum number of
// nodes in the result. excess is the error of a connection with too many, or "".
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
	op := c.readGraph()
	points, nodes, excess := githubPoints(op.fields)
	kind, message := "EXCESSIVE_PAGINATION", excess
	if excess == "" && nodes > maxNodes {
		kind, message = "MAX_NODE_LIMIT_EXCEEDED", fmt.Sprintf("This query requests up to %d "+
			"possible nodes which exceeds the maximum limit of 500,000.", nodes)
	}
	if message != "" {
		c.failGraph(c.doc("error", object{"kind": kind, "message": message}))
	}
	c.admitGitHub(points, "graphql_points", op.mutation)
	given := object{}
	if c.fault != "no-usage" {
		given["rateLimit"] = c.doc("graph_limit", object{"cost": points, "nodes": nodes})
	}
	c.ok(object{"data": c.graphData(op.fields, given)})
}
