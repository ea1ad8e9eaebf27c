package standin

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// tiers are the steps of a price, the dearest last.
var tiers = []string{"ids-only", "essentials", "pro", "enterprise", "enterprise-atmosphere"}

// mapsMethod is a method, with its lowest tier and what the fields of a mask begin with.
type mapsMethod struct {
	verb, name, mask string
	path             *regexp.Regexp
	lowest           int
	noEssentials     bool // essentials are billed as pro
	matrix           bool
}

// bucket is where it is billed: text_search.
func (m mapsMethod) bucket() string { return strings.ReplaceAll(m.name, "-", "_") }

var mapsMethods = []mapsMethod{
	{"POST", "text-search", "places.",
		regexp.MustCompile(`^/v1/places:searchText$`), 0, true, false},
	{"POST", "nearby-search", "places.", regexp.MustCompile(`^/v1/places:searchNearby$`), 2, true,
		false},
	{"GET", "place-details", "", regexp.MustCompile(`^/v1/places/[\w-]+$`), 0, false, false},
	{"POST", "compute-routes", "", regexp.MustCompile(`^/directions/v2:computeRoutes$`), 1, false,
		false},
	{"POST", "compute-route-matrix", "", regexp.MustCompile(
		`^/distanceMatrix/v2:computeRouteMatrix$`), 1, false, true},
}

// placeFields are the fields of a place by tier; one that is not there is of the highest.
var placeFields = func() map[string]int {
	all := map[string]int{}
	for tier, names := range []string{
		"attributions id name photos nextPageToken",
		"addressComponents addressDescriptor adrFormatAddress formattedAddress location plusCode " +
			"postalAddress shortFormattedAddress types viewport",
		"accessibilityOptions businessStatus containingPlaces displayName googleMapsLinks " +
			"googleMapsUri iconBackgroundColor iconMaskBaseUri primaryType " +
			"primaryTypeDisplayName pureServiceAreaBusiness subDestinations timeZone " +
			"utcOffsetMinutes",
		"currentOpeningHours currentSecondaryOpeningHours internationalPhoneNumber " +
			"nationalPhoneNumber priceLevel priceRange rating regularOpeningHours " +
			"regularSecondaryOpeningHours userRatingCount websiteUri",
	} {
		for _, name := range strings.Fields(names) {
			all[name] = tier
		}
	}
	return all
}()

// serveMaps counts requests by method, and what is billed by SKU, a bucket for each method and a
// part for each tier: a call takes one of the dearest tier that its field mask names, a matrix one
// for each of its elements.
func serveMaps(c *call) {
	for _, m := range mapsMethods {
		if m.verb != c.r.Method || !m.path.MatchString(c.r.URL.Path) {
			continue
		}
		var q routeRequest
		if m.verb == http.MethodPost && !c.parse(&q) {
			return
		}
		query := c.r.URL.Query()
		masks := slices.Concat(c.r.Header.Values("X-Goog-FieldMask"), query["fields"],
			query["$fields"])
		mask := strings.Join(masks, ",")
		if mask == "" {
			c.invalid("FieldMask is a required parameter. See " +
				"https://cloud.google.com/apis/docs/system-parameters on how to provide it.")
			return
		}
		n, tier := q.elements(m.matrix), q.tier()
		if strings.Contains(m.path.String(), "/v1/places") {
			tier = placeTier(mask, m.mask, m.lowest, m.noEssentials)
		}
		if n < 1 || n > maxElements {
			c.invalid("A matrix has 1 to %d elements.", maxElements)
			return
		}
		sku := m.bucket() + "/" + tiers[max(tier, m.lowest)]
		if c.admit(one("requests/maps."+m.name, 1), one(sku, n), paid(c.price(sku, n))) {
			c.ok(c.places(m.name, n))
		}
		return
	}
	c.fail(http.StatusNotFound, "Method not found.")
}

// placeTier returns the tier of the dearest field in the mask.
func placeTier(mask, prefix string, lowest int, noEssentials bool) int {
	tier := lowest
	for _, path := range strings.Split(mask, ",") {
		path = strings.TrimPrefix(strings.TrimSpace(path), prefix)
		name, _, _ := strings.Cut(path, ".")
		fieldTier, ok := placeFields[name]
		if !ok {
			fieldTier = len(tiers) - 1 // also "*"
		}
		tier = max(tier, fieldTier)
	}
	if tier == 1 && noEssentials {
		return 2
	}
	return tier
}

// routeRequest is what decides the price of a route.
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

// waypoint is how a place is approached.
type waypoint struct {
	SideOfRoad      bool `json:"sideOfRoad"`
	VehicleStopover bool `json:"vehicleStopover"`
	Location        struct {
		Heading *int `json:"heading"`
	} `json:"location"`
}

func (w waypoint) modified() bool {
	return w.SideOfRoad || w.VehicleStopover || w.Location.Heading != nil
}

// freeStops is how many stops on the way make no route dearer.
const freeStops = 10

const maxElements = 625

func (q routeRequest) elements(matrix bool) int64 {
	if matrix {
		return int64(len(q.Origins)) * int64(len(q.Destinations))
	}
	return 1
}

// tier returns the tier of the dearest feature.
func (q routeRequest) tier() int {
	ways := append([]waypoint{q.Origin, q.Destination}, q.Intermediates...)
	for _, e := range slices.Concat(q.Origins, q.Destinations) {
		ways = append(ways, e.Waypoint)
	}
	switch {
	case q.TravelMode == "TWO_WHEELER", slices.Contains(q.ExtraComputations, "TOLLS"),
		slices.Contains(q.ExtraComputations, "TRAFFIC_ON_POLYLINE"):
		return 3
	case strings.HasPrefix(q.RoutingPreference, "TRAFFIC_AWARE"), q.OptimizeWaypointOrder,
		len(q.Intermediates) > freeStops, slices.ContainsFunc(ways, waypoint.modified):
		return 2
	}
	return 1
}

// places makes up the answer of a method.
func (c *call) places(method string, n int64) any {
	place := func(i int) any {
		id := fmt.Sprintf("place%d-%d", c.hash()%1e9, i)
		return c.doc("place", object{"place": id})
	}
	list := []any{}
	switch method {
	case "place-details":
		return place(0)
	case "compute-routes":
		return c.doc("route", nil)
	case "compute-route-matrix":
		for i := range n {
			list = append(list, c.doc("element", object{"index": i}))
		}
		return list
	}
	for i := range c.s.Rows {
		list = append(list, place(i))
	}
	return object{"places": list}
}
