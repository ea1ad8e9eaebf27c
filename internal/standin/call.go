package standin

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// call is one request to a stand-in.
type call struct {
	s            *Server
	w            http.ResponseWriter
	r            *http.Request
	body         []byte
	now          time.Time
	number       int64         // of the request, from 1
	fault        string        // kind of the fault, "" for none
	route        route         // the zero one if none matches
	match        []string      // the groups of the route's pattern, from 1
	asked        *modelRequest // see call.request
	held         []cost        // settled when the response ends
	disconnected bool          // the client has disconnected
}

// object is a JSON object.
type object = map[string]any

// leave ends the call.
func (c *call) leave() {
	defer c.s.locked()()
	c.s.meter.settle(c.s.now(), c.held)
	c.s.counts.Open--
	if c.disconnected || c.r.Context().Err() != nil {
		c.s.counts.Cut++
	}
}

// errEnded ends a handler whose response is complete: see call.serve.
var errEnded = errors.New("the response is complete")

// serve calls a handler. A function that refuses the request ends the handler by a panic with
// errEnded.
func (c *call) serve(handler func(*call)) {
	defer func() {
		if p := recover(); p != nil && p != errEnded {
			panic(p)
		}
	}()
	handler(c)
}

// admit bills the costs and sets the headers of the limits. It refuses a request over a limit and
// ends its handler.
func (c *call) admit(costs ...cost) {
	if d := c.take(costs); d != nil {
		c.deny(*d)
	}
	c.report()
	c.dropResponse()
}

// free admits a request that costs nothing.
func (c *call) free() { c.admit(one(c.s.api.Free, 1)) }

// take bills the costs. If one does not fit, it bills none and returns the limit that denies it.
func (c *call) take(costs []cost) *denial {
	defer c.s.locked()()
	d := c.s.meter.admit(c.now, costs)
	if d == nil {
		c.held = costs
	}
	return d
}

// dropResponse ends the handler without a response if the fault is drop or hang.
func (c *call) dropResponse() {
	switch c.fault {
	case "drop":
		panic(http.ErrAbortHandler)
	case "hang":
		<-c.r.Context().Done()
		panic(errEnded)
	}
}

// deny sends the refusal of a limit, and ends the handler.
func (c *call) deny(d denial) {
	c.count(&c.s.counts.Denied)
	if c.s.api.Every {
		c.countRequest()
	}
	// The first of these refusals that the spec has is sent.
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
		"requested": d.requested, "wait": inWords(wait),
		"wait_ms": wait.Milliseconds(), "retry_after": seconds(wait), "status": status}
	for header, value := range r.Headers {
		c.header(header, c.expand(value, values))
	}
	c.json(status, c.fill(r.Document, values))
	panic(errEnded)
}

// fail sends an error that is not about limits, and ends the handler. name is the error's status,
// or its name in the spec. The spec's values for this error replace the given ones. Missing values
// are those for its status or else those for other errors.
func (c *call) fail(name string, values object) {
	c.count(&c.s.counts.Failed)
	if c.s.api.Every && name != "401" && c.fault == "" {
		c.countRequest()
	}
	known := c.s.api.Errors
	all := object{"code": nil, "kind": nil}
	maps.Copy(all, values)
	maps.Copy(all, specs()["common"].Errors[name])
	maps.Copy(all, known[name])
	if _, ok := all["status"]; !ok {
		all["status"], _ = strconv.Atoi(name)
	}
	for _, usual := range []object{known[fmt.Sprint(all["status"])], known["other"]} {
		for key, value := range usual {
			if all[key] == nil {
				all[key] = value
			}
		}
	}
	all["reason"], _, _ = strings.Cut(name, " ")
	for _, key := range []string{"message", "details"} {
		all[key] = c.fill(all[key], all)
	}
	c.json(all["status"].(int), c.fill(c.s.api.Fail, all))
	panic(errEnded)
}

// countRequest bills a failed request, if the API counts failed requests.
func (c *call) countRequest() {
	if bucket := c.bucket(c.s.api.Failed); bucket != "" {
		defer c.s.locked()()
		c.s.meter.spend(c.now, one(bucket, 1))
	}
}

func (c *call) count(what *int64) {
	defer c.s.locked()()
	*what++
}

// failEarly ends the handler with the response of a fault that applies before the request is
// priced.
func (c *call) failEarly() {
	switch c.fault {
	case "401":
		c.fail("401", nil)
	case "429":
		c.deny(denial{bucket: "requests", limit: Limit{Units: 1, Window: time.Second},
			requested: 1, until: c.now.Add(time.Second)})
	case "spend":
		c.deny(denial{bucket: money, limit: Limit{Units: 1, Calendar: "month"}, requested: 1})
	case "500", "503", "529":
		c.countRequest()
		c.fail(c.fault, nil)
	case "html":
		c.countRequest()
		c.count(&c.s.counts.Failed)
		c.header("Content-Type", "text/html; charset=utf-8")
		c.w.WriteHeader(http.StatusBadGateway)
		_, _ = c.w.Write([]byte("<!DOCTYPE html><title>502 Bad Gateway</title>\n"))
		panic(errEnded)
	}
}

// wait pauses. It returns false if the client disconnects.
func (c *call) wait(d time.Duration) bool {
	if d <= 0 {
		return c.r.Context().Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-c.r.Context().Done():
		return false
	}
}

// rate returns the i-th limit of a bucket with its current use, or false if there is none.
func (c *call) rate(bucket string, i int) (rate, bool) {
	defer c.s.locked()()
	rates := c.s.meter.ratesOf(bucket)
	if i >= len(rates) {
		return rate{}, false
	}
	rates[i].turn(c.now)
	return *rates[i], true
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// header sets a header.
func (c *call) header(name, value string) { c.w.Header().Set(name, value) }

// seconds rounds up to whole seconds, at least one.
func seconds(d time.Duration) int64 { return max(1, int64((d+time.Second-1)/time.Second)) }

// parse reads the body as a JSON object, or sends 400 and ends the handler.
func (c *call) parse(into any) {
	if err := json.Unmarshal(c.body, into); err != nil {
		c.fail("not JSON", object{"problem": err})
	}
}

// hash returns a number that depends only on the request.
func (c *call) hash() uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.r.URL.RequestURI()))
	_, _ = h.Write(c.body)
	return h.Sum64()
}

// id returns an ID that depends only on the number of the request.
func (c *call) id(prefix string) string {
	sum := sha256.Sum256([]byte(c.s.name + decimal(c.number)))
	return prefix + hex.EncodeToString(sum[:12])
}

// price returns the price of n things, in millionths of a dollar.
func (c *call) price(name string, n int64) float64 {
	defer c.s.locked()()
	return c.s.Prices[name] * float64(n)
}

// paid returns the cost of a sum of money, rounded up. It ignores less than a millionth of a unit,
// which is a rounding error.
func paid(sum float64) cost { return one(money, int64(math.Ceil(min(sum, maxUnits)-1e-6))) }

// money is the bucket of millionths of a dollar.
const money = "money"

// ok sends a document with status 200.
func (c *call) ok(doc any) { c.json(http.StatusOK, doc) }

// json sends a document, changed by the call's fault. The stand-in of YouTube indents it.
func (c *call) json(status int, doc any) {
	var text []byte
	if c.r.Method != http.MethodHead {
		pretty := c.r.URL.Query().Get("prettyPrint") != "false"
		text = encode(doc, c.s.name == youTubeName && pretty)
	}
	c.header("Content-Type", "application/json; charset=utf-8")
	c.send(status, text)
}

// send sends a body, changed by the call's fault, and compressed if the client accepts gzip.
func (c *call) send(status int, text []byte) {
	if c.fault == "truncated" {
		text = text[:len(text)/2]
	}
	accepts := strings.Contains(c.r.Header.Get("Accept-Encoding"), "gzip")
	packed := accepts && c.s.name != youTubeName && len(text) > 0
	parts := [][]byte{text}
	switch {
	case c.fault == "bomb":
		c.header("Content-Encoding", "gzip")
		// a gzip stream may have several members
		parts = slices.Repeat([][]byte{pack(make([]byte, 1<<20))}, 64)
	case c.fault == "cut", c.fault == "endless":
		c.header("Content-Length", strconv.Itoa(len(text)))
		if parts = [][]byte{text[:len(text)/2], text[len(text)/2:]}; c.fault == "endless" {
			c.w.Header().Del("Content-Length")
		}
	case packed:
		c.header("Content-Encoding", "gzip")
		c.w.Header().Add("Vary", "Accept-Encoding")
		parts[0] = pack(text)
	}
	c.w.WriteHeader(status)
	c.write(parts, 0, " ")
}

// write sends a body in parts. If there are several, the faults cut, truncated and endless apply in
// the middle; filler continues an endless body.
func (c *call) write(parts [][]byte, pace time.Duration, filler string) {
	middle := (len(parts) + 1) / 2
	for i, part := range parts {
		if i > 0 && !c.wait(pace) || !c.wait(0) {
			return
		}
		if i >= middle {
			switch c.fault {
			case "cut":
				panic(http.ErrAbortHandler)
			case "truncated":
				return
			case "endless":
				for c.wait(time.Millisecond) && c.put([]byte(filler), true) {
				}
				return
			}
		}
		if !c.put(part, len(parts) > 1) {
			return
		}
	}
}

// put sends a part of a body. It returns false if the client has disconnected.
func (c *call) put(part []byte, isPart bool) bool {
	_, err := c.w.Write(part)
	if err == nil && isPart {
		err = http.NewResponseController(c.w).Flush()
	}
	c.disconnected = err != nil
	return err == nil
}

func pack(text []byte) []byte {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(text)
	_ = z.Close()
	return packed.Bytes()
}
