package standin

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

// apiFiles hold the specs of the APIs by name. apis/requests.yaml explains their keys.
//
//go:embed apis/*.yaml
var apiFiles embed.FS

// spec is what an API limits, charges for and answers.
type spec struct {
	Limits    map[string][]Limit
	Prices    map[string]float64
	Undivided string
	Refills   bool
	Zone      string
	Failed    string
	Every     bool
	Key       []string
	Headers   map[string]string
	Report    []struct {
		Buckets []string
		Headers map[string]string
	}
	Errors    map[int]failure
	Fail      any
	Denied    map[string]refusal
	Documents map[string]any
}

// failure describes the error with a status.
type failure struct {
	Status        int // to send instead; 0 for none
	Kind, Message string
	Code          any
}

// refusal is the response to a request over a limit.
type refusal struct {
	Status   int  // 0 for 429
	Report   bool // with the headers of the limits
	Headers  map[string]string
	Document any
}

var specs = sync.OnceValue(func() map[string]spec {
	all := map[string]spec{}
	for _, name := range []string{"apis/models.yaml", "apis/requests.yaml"} {
		readSpec(name, &all)
	}
	return all
})

// readSpec reads one of apiFiles. It panics if that has an unknown key, because it is embedded.
func readSpec(name string, into any) {
	text, err := apiFiles.ReadFile(name)
	if err == nil {
		in := yaml.NewDecoder(bytes.NewReader(text))
		in.KnownFields(true)
		err = in.Decode(into)
	}
	if err != nil {
		panic(fmt.Errorf("%s: %w", name, err))
	}
}

// key returns the credential of a request, or "".
func (s spec) key(r *http.Request) (key string) {
	for _, place := range s.Key {
		parameter, inQuery := strings.CutPrefix(place, "?")
		switch {
		case key != "":
		case place == "Authorization":
			key = bearer(r)
		case inQuery:
			key = r.URL.Query().Get(parameter)
		default:
			key = r.Header.Get(place)
		}
	}
	return key
}

// bearer returns the token of Authorization: Bearer.
func bearer(r *http.Request) string {
	for _, scheme := range []string{"Bearer ", "bearer ", "token "} {
		if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), scheme); ok {
			return token
		}
	}
	return ""
}

// doc returns a document of the API with values for its names. Any document may use $id and $now.
func (c *call) doc(name string, values object) object {
	filled, _ := c.fill(c.s.api.Documents[name], values).(object)
	if filled == nil {
		panic("no document " + name)
	}
	return filled
}

func (c *call) fill(document any, values object) any {
	return fill(document, c.fault != "no-usage",
		func(name string) any { return c.value(name, values) })
}

// absent is the value of a member that is left out.
type absent struct{}

// fill returns a document with values for its names. optional reports whether to include
// the members whose names end in *.
func fill(document any, optional bool, value func(name string) any) any {
	switch d := document.(type) {
	case string:
		if name, ok := strings.CutPrefix(d, "$"); ok && !strings.ContainsAny(name, "$. /}") {
			return value(name)
		}
		return os.Expand(d, func(name string) string { return fmt.Sprint(value(name)) })
	case object:
		filled := object{}
		for key, member := range d {
			key, isOptional := strings.CutSuffix(key, "*")
			member = fill(member, optional, value)
			if member != (absent{}) && (optional || !isOptional) {
				filled[key] = member
			}
		}
		return filled
	case []any:
		filled := []any{}
		for _, element := range d {
			filled = append(filled, fill(element, optional, value))
		}
		return filled
	}
	return document
}

func (c *call) value(name string, values object) any {
	if value, ok := values[name]; ok {
		return value
	}
	switch name {
	case "id":
		return c.id("")
	case "now":
		return c.now.Unix()
	}
	panic("no value " + name)
}

func (c *call) expand(text string, values object) string {
	return os.Expand(text, func(name string) string { return fmt.Sprint(c.value(name, values)) })
}

// bucket returns the bucket of the request for the name of a bucket in the spec.
func (c *call) bucket(name string) string {
	if c.s.api.bucket == nil || name == "" {
		return name
	}
	return c.s.api.bucket(c, name)
}

// report sets the headers of the limits, as the fault leaves them.
func (c *call) report() {
	for _, r := range c.s.api.Report {
		var least gauge
		for _, bucket := range r.Buckets {
			g, ok := c.gauge(c.bucket(bucket), 0)
			if ok && (least.bucket == "" || g.left < least.left) {
				least = g
			}
		}
		if least.bucket == "" {
			continue
		}
		for header, value := range r.Headers {
			c.limitHeader(header, c.expand(value, c.values(least)), value == "$bucket")
		}
	}
}

// limitHeader sets a header of a limit, as the fault leaves it. No fault changes a header that
// names the limit.
func (c *call) limitHeader(name, value string, isName bool) {
	switch {
	case isName:
	case c.fault == "no-headers":
		return
	case c.fault == "minus-one":
		value = "-1"
	case c.fault == "nonsense":
		value = "soon"
	}
	c.header(name, value)
}

// values returns the values of a limit.
func (c *call) values(g gauge) object {
	left, until := g.left, g.reset.Sub(c.now)
	if c.fault == "stale" {
		left = g.limit
	}
	return object{"bucket": g.bucket, "limit": g.limit, "left": left, "used": g.used,
		"unix": g.reset.Unix(), "at": rfc3339(g.reset), "in_seconds": seconds(until),
		"in_words": inWords(until)}
}

// sendFailure sends an error in the API's own shape.
func (c *call) sendFailure(status int, message string, values object) {
	e, usual := c.s.api.Errors[status], c.s.api.Errors[0]
	all := object{"status": status, "message": cmp.Or(e.Message, message),
		"kind": cmp.Or(e.Kind, usual.Kind), "code": e.Code}
	maps.Copy(all, values)
	c.json(cmp.Or(e.Status, status), c.fill(c.s.api.Fail, all))
}

// sendRefusal refuses a request for a limit.
func (c *call) sendRefusal(d denial) {
	whole, _, _ := strings.Cut(d.bucket, "/")
	names := []string{whole, d.limit.Calendar, "other"}
	if d.requested > d.limit.Units {
		names = append([]string{whole + " too large", "other too large"}, names...)
	}
	i := slices.IndexFunc(names, func(name string) bool {
		_, ok := c.s.api.Denied[name]
		return ok
	})
	r := c.s.api.Denied[names[i]]
	if r.Report {
		c.report()
	}
	wait := max(time.Millisecond, d.until.Sub(c.now))
	status := cmp.Or(r.Status, http.StatusTooManyRequests)
	values := object{"bucket": d.bucket, "limit": d.limit, "units": d.limit.Units, "used": d.used,
		"requested": d.requested, "model": c.model(), "wait": inWords(wait),
		"wait_ms": wait.Milliseconds(), "retry_after": seconds(wait), "status": status}
	for header, value := range r.Headers {
		c.header(header, c.expand(value, values))
	}
	c.json(status, c.fill(r.Document, values))
}

// inWords formats a duration as the headers of OpenAI do: 12ms, 7.66s, 6m0s.
func inWords(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	return d.Round(time.Millisecond).String()
}

// rfc3339 formats a time in whole seconds, rounded up.
func rfc3339(t time.Time) string {
	return t.Add(time.Second - 1).Truncate(time.Second).UTC().Format(time.RFC3339)
}
