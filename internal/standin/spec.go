package standin

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

// apiFiles hold the specs of the APIs by name. apis/requests.yaml explains their keys.
//
//go:embed apis/*.yaml
var apiFiles embed.FS

// spec has the limits, prices and responses of an API.
type spec struct {
	Limits    map[string][]Limit
	Prices    map[string]float64
	Undivided string
	Refills   bool
	Zone      string
	Failed    string
	Tiers     [][]string
	Every     bool
	Free      string
	Key       []string
	Requires  string
	Headers   map[string]string
	Metrics   map[string][2]string
	Services  map[string]service
	Kinds     []string
	Faults    map[string]struct{ Refuses, Rejects, Replaces string }
	Finish    [2]string
	Report    []struct {
		Buckets []string
		Headers map[string]string
	}
	Errors    map[string]object
	Fail      any
	Denied    map[string]refusal
	Documents map[string]any
	Streams   map[string][]event

	Methods, Regions, Categories [][]string
}

// event is an event of a stream. With Each, it is repeated for each piece of the text.
type event struct {
	Name string
	Each bool
	Data any
}

// refusal is the response to a request over a limit.
type refusal struct {
	Status   int  // 0 for 429
	Report   bool // the response has the headers of the limits
	Headers  map[string]string
	Document any
}

var specs = sync.OnceValue(func() map[string]spec {
	all := map[string]spec{}
	for _, name := range []string{"models", "requests", "youtube"} {
		text, err := apiFiles.ReadFile("apis/" + name + ".yaml")
		in := yaml.NewDecoder(bytes.NewReader(text))
		in.KnownFields(true)
		if err = errors.Join(err, in.Decode(&all)); err != nil {
			panic(fmt.Errorf("%s: %w", name, err)) // cannot happen: the file is embedded
		}
	}
	return all
})

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

// doc returns a document of the API in which values replace their names.
func (c *call) doc(name string, values object) object {
	filled, _ := c.fill(c.s.api.Documents[name], values).(object)
	if filled == nil {
		panic("no document " + name)
	}
	return filled
}

// fill returns a document in which values replace their names. It omits members with a trailing *
// if the fault is no-usage, and those with a trailing ~ if they are empty.
func (c *call) fill(document any, values object) any {
	switch d := document.(type) {
	case string:
		if m := wholeName.FindStringSubmatch(d); m != nil {
			return c.value(m[1]+m[2], values)
		}
		return c.expand(d, values)
	case object:
		filled := object{}
		for key, member := range d {
			key, isUsage := strings.CutSuffix(key, "*")
			key, isOptional := strings.CutSuffix(key, "~")
			member = c.fill(member, values)
			if !(isUsage && c.fault == "no-usage") && !(isOptional && isEmpty(member)) {
				filled[key] = member
			}
		}
		return filled
	case []any:
		filled := []any{}
		for _, element := range d {
			filled = append(filled, c.fill(element, values))
		}
		return filled
	}
	return document
}

// wholeName matches a string that is only the name of a value. The value keeps its type.
var wholeName = regexp.MustCompile(`^\$(?:(\w+)|\{([^}]+)\})$`)

func isEmpty(value any) bool {
	list, isList := value.([]string)
	return value == nil || value == "" || value == int64(0) || isList && len(list) == 0
}

// value returns the value with that name: from values, or one that every document may use.
func (c *call) value(name string, values object) any {
	if value, ok := values[name]; ok {
		return value
	}
	// for example, left/tokens/1 is the rest of the second limit of tokens
	if figure, bucket, ok := strings.Cut(name, "/"); ok {
		bucket, index, _ := strings.Cut(bucket, "/")
		i, _ := strconv.Atoi(index)
		r, ok := c.rate(c.bucket(bucket), i)
		if !ok || c.fault == "no-headers" {
			return nil
		}
		return c.values(bucket, r)[figure]
	}
	switch name {
	case "id":
		return c.id("")
	case "now":
		return c.now.Unix()
	case "method":
		return c.r.Method
	case "path":
		return c.r.URL.Path
	case "model":
		return c.model()
	}
	panic("no value " + name)
}

func (c *call) expand(text string, values object) string {
	return os.Expand(text, func(name string) string { return fmt.Sprint(c.value(name, values)) })
}

// bucket returns the request's part of a bucket of the spec.
func (c *call) bucket(name string) string {
	if c.s.api.bucket == nil || name == "" {
		return name
	}
	return c.s.api.bucket(c, name)
}

// report sets the headers with the limits.
func (c *call) report() {
	for _, r := range c.s.api.Report {
		var least object
		smallest := int64(math.MaxInt64)
		for _, bucket := range r.Buckets {
			bucket = c.bucket(bucket)
			if candidate, ok := c.rate(bucket, 0); ok && candidate.left() < smallest {
				least, smallest = c.values(bucket, candidate), candidate.left()
			}
		}
		for header, value := range r.Headers {
			if least != nil && (c.fault != "no-headers" || value == "$bucket") {
				c.header(header, c.expand(value, least))
			}
		}
	}
}

// values returns the values of a limit, changed by the call's fault.
func (c *call) values(bucket string, r rate) object {
	reset := r.when(c.now, 0)
	values := object{"limit": r.Units, "left": r.left(), "used": min(r.Units, int64(r.used)),
		"per_second": float64(r.Units) / max(r.Window.Seconds(), 1),
		"unix":       reset.Unix(), "at": rfc3339(reset), "in_seconds": seconds(reset.Sub(c.now)),
		"in_words": inWords(reset.Sub(c.now))}
	for name := range values {
		switch {
		case c.fault == "minus-one":
			values[name] = -1
		case c.fault == "nonsense":
			values[name] = "soon"
		case c.fault == "stale" && name == "left":
			values[name] = r.Units
		}
	}
	values["bucket"] = bucket
	return values
}

// inWords formats a duration as in OpenAI's headers: 12ms, 7.66s, 6m0s.
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
