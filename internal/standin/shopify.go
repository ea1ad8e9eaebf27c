package standin

import "math"

// shopifyRoutes count points of the GraphQL Admin API in a bucket that refills all the time.
var shopifyRoutes = []route{
	{`POST /admin/api/(?:\d{4}-\d{2}|unstable)/graphql\.json`, (*call).shopifyGraph, ""}}

const maxQuery = 1_000 // points that one query may take

// shopifyGraph serves a query, which is admitted if the most that it may take is left, and billed
// for what it found.
func (c *call) shopifyGraph() {
	op := c.readGraph()
	requested := shopifyPoints(op, math.MaxInt64)
	actual := shopifyPoints(op, int64(c.s.Rows))
	if requested > maxQuery {
		c.failGraph(c.doc("too_large", object{"requested": requested}))
	}
	c.admit(cost{bucket: "points", billed: actual, held: requested})
	unlock := c.s.locked()
	c.s.meter.settle(c.now, c.held) // so that the response can report what is left
	c.held = nil
	unlock()
	c.ok(c.doc("reply", object{"data": c.graphData(op.fields, nil), "requested": requested,
		"actual": actual}))
}

// shopifyPoints returns 1 for each object, 2 for each connection and its nodes, none for scalars,
// 10 for each mutation. A connection has as many nodes as it asks for, but no more than rows.
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
