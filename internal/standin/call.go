package standin

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// call is one request on its way through a stand-in.
type call struct {
	s      *Server
	w      http.ResponseWriter
	r      *http.Request
	body   []byte
	now    time.Time
	number int64  // of the request, from 1
	fault  string // what goes wrong, "" for nothing
	held   []cost // to be settled when the answer ends
	gone   bool   // the client did not wait for the answer
}

// leave ends the call, however it ended.
func (c *call) leave() {
	defer c.s.locked()()
	c.s.meter.settle(c.s.now(), c.held)
	c.s.counts.Open--
	if c.gone || c.r.Context().Err() != nil {
		c.s.counts.Cut++
	}
}

// admit bills the costs, or refuses the request and returns false.
func (c *call) admit(costs ...cost) bool {
	d := c.take(costs)
	if d != nil {
		c.deny(*d)
		return false
	}
	return !c.lost()
}

// lost ends the call without a response if its fault is drop or hang.
func (c *call) lost() bool {
	switch c.fault {
	case "drop":
		panic(http.ErrAbortHandler)
	case "hang":
		<-c.r.Context().Done()
		return true
	}
	return false
}

func (c *call) take(costs []cost) *denial {
	defer c.s.locked()()
	d := c.s.meter.admit(c.now, costs)
	if d == nil {
		c.held = costs
	}
	return d
}

// deny refuses the request for a limit.
func (c *call) deny(d denial) {
	c.count(&c.s.counts.Denied)
	if c.s.api.every {
		c.countRequest()
	}
	c.s.api.deny(c, d)
}

// fail answers an error that is no matter of limits.
func (c *call) fail(status int, format string, args ...any) {
	c.count(&c.s.counts.Failed)
	if c.s.api.every && status != http.StatusUnauthorized && c.fault == "" {
		c.countRequest()
	}
	c.s.api.fail(c, status, fmt.Sprintf(format, args...))
}

// countRequest bills a request that failed, where the API counts those.
func (c *call) countRequest() {
	if c.s.api.failed == nil {
		return
	}
	if bucket := c.s.api.failed(c); bucket != "" {
		defer c.s.locked()()
		c.s.meter.spend(c.now, one(bucket, 1))
	}
}

func (c *call) count(what *int64) {
	defer c.s.locked()()
	*what++
}

// failing answers a fault that needs no more than the request, and reports whether there was one.
func (c *call) failing() bool {
	switch c.fault {
	case "401":
		c.fail(http.StatusUnauthorized, "the credential is not valid")
	case "429":
		c.deny(denial{bucket: "requests", limit: Limit{Units: 1, Window: time.Second},
			requested: 1, until: c.now.Add(time.Second)})
	case "spend":
		c.deny(denial{bucket: money, limit: Limit{Units: 1, Calendar: "month"}, requested: 1})
	case "500", "503", "529":
		status, _ := strconv.Atoi(c.fault)
		c.countRequest()
		c.fail(status, "the server is out of order")
	case "html":
		c.countRequest()
		c.count(&c.s.counts.Failed)
		c.w.Header().Set("Content-Type", "text/html; charset=utf-8")
		c.w.WriteHeader(http.StatusBadGateway)
		_, _ = c.w.Write([]byte("<!DOCTYPE html><title>502 Bad Gateway</title>\n"))
	default:
		return false
	}
	return true
}

// wait pauses, or returns false because the client is gone.
func (c *call) wait(d time.Duration) bool {
	if d <= 0 {
		return c.r.Context().Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.r.Context().Done():
		return false
	}
}

// gauge is what a limit says of itself.
type gauge struct {
	limit, left, used int64
	reset             time.Time
}

// gauge reads the limit of a bucket with that index, or returns false where there is none.
func (c *call) gauge(bucket string, i int) (gauge, bool) {
	defer c.s.locked()()
	rates := c.s.meter.of(bucket)
	if i >= len(rates) {
		return gauge{}, false
	}
	r := rates[i]
	r.turn(c.now)
	return gauge{r.Units, r.left(), min(r.Units, int64(r.used)), r.reset(c.now)}, true
}

// tell sets the header that says what is left or when it resets, or what a fault makes of it.
func (c *call) tell(name, value string) {
	switch c.fault {
	case "no-headers":
		return
	case "minus-one":
		value = "-1"
	case "nonsense":
		value = "soon"
	}
	c.w.Header().Set(name, value)
}

// left is the number that a header says is left.
func (c *call) left(g gauge) string {
	if c.fault == "stale" {
		return strconv.FormatInt(g.limit, 10)
	}
	return strconv.FormatInt(g.left, 10)
}

// header sets a header.
func (c *call) header(name, value string) { c.w.Header().Set(name, value) }

// retryAfter sets Retry-After to the seconds until a time, at least one.
func (c *call) retryAfter(until time.Time) {
	c.header("Retry-After", strconv.FormatInt(seconds(until.Sub(c.now)), 10))
}

// seconds are whole ones, rounded up, at least one.
func seconds(d time.Duration) int64 { return max(1, int64((d+time.Second-1)/time.Second)) }

// parse reads the body as a JSON object, or answers 400 and returns false.
func (c *call) parse(into any) bool {
	if err := json.Unmarshal(c.body, into); err != nil {
		c.fail(http.StatusBadRequest, "the body is not the JSON that is expected: %v", err)
		return false
	}
	return true
}

// hash is a number that depends on the request alone.
func (c *call) hash() uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.r.URL.RequestURI()))
	_, _ = h.Write(c.body)
	return h.Sum64()
}

// id is a name that depends on the number of the request.
func (c *call) id(prefix string) string {
	sum := sha256.Sum256([]byte(c.s.name + strconv.FormatInt(c.number, 10)))
	return prefix + hex.EncodeToString(sum[:12])
}

// price is what n of something take, in millionths of a dollar.
func (c *call) price(name string, n int64) float64 {
	defer c.s.locked()()
	return c.s.Prices[name] * float64(n)
}

// paid is the cost of money, rounded up. Less than a millionth of a unit is the noise of fractions.
func paid(sum float64) cost { return one(money, int64(math.Ceil(min(sum, maxUnits)-1e-6))) }

// money is the bucket of millionths of a dollar.
const money = "money"

// json answers with a document, or with what a fault makes of it.
func (c *call) json(status int, doc any) {
	text, err := json.Marshal(doc)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{}`)
	}
	if c.r.Method == http.MethodHead {
		text = nil
	}
	c.header("Content-Type", "application/json; charset=utf-8")
	c.send(status, text)
}

func (c *call) send(status int, text []byte) {
	switch c.fault {
	case "truncated":
		text = text[:len(text)/2]
	case "bomb":
		c.header("Content-Encoding", "gzip")
		c.w.WriteHeader(status)
		for mebibyte, n := pack(make([]byte, 1<<20)), 0; n < 64 && c.wait(0); n++ {
			_, _ = c.w.Write(mebibyte) // members of gzip may follow one another
		}
		return
	case "endless":
		c.w.WriteHeader(status)
		for spaces := bytes.Repeat([]byte(" "), 1<<10); c.wait(time.Millisecond); {
			_, _ = c.w.Write(spaces)
		}
		return
	case "cut":
		c.header("Content-Length", strconv.Itoa(len(text)))
		c.w.WriteHeader(status)
		_, _ = c.w.Write(text[:len(text)/2])
		_ = http.NewResponseController(c.w).Flush()
		panic(http.ErrAbortHandler)
	}
	c.write(status, text)
}

// write answers a body, packed if the client takes gzip.
func (c *call) write(status int, text []byte) {
	if len(text) > 0 && strings.Contains(c.r.Header.Get("Accept-Encoding"), "gzip") {
		c.header("Content-Encoding", "gzip")
		c.header("Vary", "Accept-Encoding")
		text = pack(text)
	}
	c.w.WriteHeader(status)
	_, _ = c.w.Write(text)
}

func pack(text []byte) []byte {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(text)
	_ = z.Close()
	return packed.Bytes()
}

// object is a JSON object.
type object = map[string]any
