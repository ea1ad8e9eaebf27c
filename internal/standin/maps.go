package standin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// tiers are the price tiers, the most expensive last.
var tiers = []string{"ids-only", "essentials", "pro", "enterprise", "enterprise-atmosphere"}

// mapsRoutes count requests by method, and billable events by SKU: a bucket for each method, with a
// part for each tier. A call is one event of the most expensive tier in its field mask; a route
// matrix is one for each of its elements.
var mapsRoutes = []route{
	{"POST /v1/places:searchText", places("places.", 0, true), "text-search"},
	{"POST /v1/places:searchNearby", places("places.", 2, true), "nearby-search"},
	{`GET /v1/places/([\w-]+)`, places("", 0, false), "place-details"},
	{"POST /directions/v2:computeRoutes", func(c *call) {
		c.admitMaps(c.readRoute().tier(), 1)
		c.ok(c.doc("route", nil))
	}, "compute-routes"},
	{"POST /distanceMatrix/v2:computeRouteMatrix", (*call).computeRouteMatrix,
		"compute-route-matrix"},
}

// readMask returns the request's field mask, or sends 400 and ends the handler.
func (c *call) readMask() string {
	query := c.r.URL.Query()
	mask := strings.Join(slices.Concat(c.r.Header.Values("X-Goog-FieldMask"), query["fields"],
		query["$fields"]), ",")
	if mask == "" {
		c.fail("no mask", nil)
	}
	return mask
}

// admitMaps bills n events in a tier of the route's method.
func (c *call) admitMaps(tier int, n int64) {
	sku := strings.ReplaceAll(c.route.part, "-", "_") + "/" + tiers[tier]
	c.admit(one("requests/maps."+c.route.part, 1), one(sku, n), paid(c.price(sku, n)))
}

// places returns a handler for places. In its field mask, names begin with the prefix.
func places(prefix string, lowest int, noEssentials bool) func(*call) {
	return func(c *call) {
		if c.r.Method == http.MethodPost {
			c.parse(&object{})
		}
		c.admitMaps(c.placeTier(c.readMask(), prefix, lowest, noEssentials), 1)
		var all []any
		for i := range c.s.Rows {
			id := fmt.Sprintf("place%d-%d", c.hash()%1e9, i)
			all = append(all, c.doc("place", object{"place": id}))
		}
		if c.r.Method == http.MethodGet {
			c.ok(all[0])
		} else {
			c.ok(object{"places": all})
		}
	}
}

// placeTier returns the tier of the most expensive field in the mask. "*" and fields that are not
// in the spec are in the highest tier.
func (c *call) placeTier(mask, prefix string, lowest int, noEssentials bool) int {
	tier := lowest
	for path := range strings.SplitSeq(mask, ",") {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(path), prefix), ".")
		fieldTier := slices.IndexFunc(c.s.api.Tiers, func(names []string) bool {
			return slices.Contains(names, name)
		})
		if fieldTier < 0 {
			fieldTier = len(tiers) - 1
		}
		tier = max(tier, fieldTier)
	}
	if tier == 1 && noEssentials {
		return 2
	}
	return tier
}

// routeRequest has the fields of a route request that determine its price.
type routeRequest struct {
	TravelMode            string   `json:"travelMode"`
	RoutingPreference     string   `json:"routingPreference"`
	ExtraComputations     []string `json:"extraComputations"`
	OptimizeWaypointOrder bool     `json:"optimizeWaypointOrder"`

	Origin        waypoint        `json:"origin"`
	Destination   waypoint        `json:"destination"`
	Intermediates []waypoint      `json:"intermediates"`
	Origins       []matrixElement `json:"origins"`
	Destinations  []matrixElement `json:"destinations"`
}

type matrixElement struct {
	Waypoint waypoint `json:"waypoint"`
}

// waypoint has the fields of a waypoint that determine the price.
type waypoint struct {
	SideOfRoad      bool `json:"sideOfRoad"`
	VehicleStopover bool `json:"vehicleStopover"`
	Location        struct {
		Heading *int `json:"heading"`
	} `json:"location"`
}

// tier returns the tier of the most expensive feature.
func (q routeRequest) tier() int {
	ways := append([]waypoint{q.Origin, q.Destination}, q.Intermediates...)
	for _, e := range slices.Concat(q.Origins, q.Destinations) {
		ways = append(ways, e.Waypoint)
	}
	modified := func(w waypoint) bool {
		return w.SideOfRoad || w.VehicleStopover || w.Location.Heading != nil
	}
	switch {
	case q.TravelMode == "TWO_WHEELER", slices.Contains(q.ExtraComputations, "TOLLS"),
		slices.Contains(q.ExtraComputations, "TRAFFIC_ON_POLYLINE"):
		return 3
	case strings.HasPrefix(q.RoutingPreference, "TRAFFIC_AWARE"), q.OptimizeWaypointOrder,
		len(q.Intermediates) > 10, slices.ContainsFunc(ways, modified):
		return 2
	}
	return 1
}

func (c *call) computeRouteMatrix() {
	q := c.readRoute()
	n := len(q.Origins) * len(q.Destinations)
	if n < 1 || n > 625 {
		c.fail("wrong elements", nil)
	}
	c.admitMaps(q.tier(), int64(n))
	var all []any
	for i := range n {
		all = append(all, c.doc("element", object{"index": i}))
	}
	c.ok(all)
}

// readRoute reads a route request, which must have a field mask.
func (c *call) readRoute() (q routeRequest) {
	c.parse(&q)
	c.readMask()
	return q
}
