package standin

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"time"
)

// shopify counts points of its GraphQL Admin API in a bucket that refills all the time. A query is
// admitted if what it may take is left, and takes what it did.
var shopify = api{
	limits:  map[string][]Limit{"points": {{Units: 2_000, Window: 20 * time.Second}}},
	refills: true,
	key:     func(r *http.Request) string { return r.Header.Get("X-Shopify-Access-Token") },
	serve:   serveShopify,
	fail: func(c *call, status int, message string) {
		if status == http.StatusUnauthorized {
			message = "[API] Invalid API key or access token (unrecognized login or wrong password)"
		}
		c.json(status, object{"errors": message})
	},
	deny: func(c *call, d denial) { c.throttled(d.requested) },
}

var shopifyPath = regexp.MustCompile(`^/admin/api/(?:\d{4}-\d{2}|unstable)/graphql\.json$`)

const maxQuery = 1_000 // points that one query may take

func serveShopify(c *call) {
	c.header("X-Request-Id", c.id(""))
	if c.r.Method != http.MethodPost || !shopifyPath.MatchString(c.r.URL.Path) {
		c.fail(http.StatusNotFound, "Not Found")
		return
	}
	op, ok := c.readGraph()
	if !ok {
		return
	}
	requested := shopifyPoints(op, math.MaxInt64)
	actual := shopifyPoints(op, int64(c.s.Rows))
	if requested > maxQuery {
		c.count(&c.s.counts.Failed)
		c.ok(object{"errors": []any{object{
			"message": fmt.Sprintf("Query cost is %d, which exceeds the single query max cost "+
				"limit (%d).", requested, maxQuery),
			"extensions": object{"code": "MAX_COST_EXCEEDED", "cost": requested,
				"maxCost": maxQuery, "documentation": shopifyDocs}}}})
		return
	}
	if !c.admit(cost{bucket: "points", billed: actual, held: requested}) {
		return
	}
	c.settle() // so that the response can report what is left
	doc := object{"data": c.made(op.fields, nil, "data")}
	if c.fault != "no-usage" {
		doc["extensions"] = c.shopifyCost(requested, actual)
	}
	c.ok(doc)
}

// shopifyPoints returns 1 for each object, 2 for each connection and its nodes, none for scalars, 10
// for each mutation. A connection has as many nodes as it asks for, but no more than rows.
func shopifyPoints(op operation, rows int64) int64 {
	var sum func(fields []field) int64
	sum = func(fields []field) (points int64) {
		for _, f := range fields {
			switch below := sum(f.below); {
			case f.connection:
				points += 2 + max(0, min(f.size, rows, maxQuery+1))*max(1, below)
			case f.name == "edges" || f.name == "pageInfo":
				points += below
			case f.below != nil:
				points += 1 + below
			}
			points = min(points, 1<<40)
		}
		return points
	}
	points := sum(op.fields)
	if op.mutation {
		points = min(points, 1<<40) + 9*int64(len(op.fields))
	}
	return points
}

func (c *call) shopifyCost(requested int64, actual any) object {
	var status object
	if g, ok := c.gauge("points", 0); ok && c.fault != "no-headers" {
		status = object{"maximumAvailable": float64(g.limit), "currentlyAvailable": c.leftInBody(g),
			"restoreRate": c.restoreRate()}
	}
	return object{"cost": object{"requestedQueryCost": requested, "actualQueryCost": actual,
		"throttleStatus": status}}
}

// restoreRate returns the points that come back in a second.
func (c *call) restoreRate() float64 {
	defer c.s.locked()()
	r := c.s.meter.of("points")[0]
	if r.Window == 0 {
		return 0
	}
	return float64(r.Units) / r.Window.Seconds()
}

const shopifyDocs = "https://shopify.dev/api/usage/rate-limits"

// throttled refuses a query that may take more than is left.
func (c *call) throttled(requested int64) {
	c.ok(object{
		"errors": []any{object{"message": "Throttled", "extensions": object{
			"code": "THROTTLED", "documentation": shopifyDocs}}},
		"extensions": c.shopifyCost(requested, nil)})
}
