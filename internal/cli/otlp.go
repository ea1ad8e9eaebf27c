package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/untrusted"
)

// otlp sends metrics to an OpenTelemetry collector, as OTLP JSON over HTTP. The SDK would add
// megabytes to the programs for this one request.
type otlp struct {
	url      string
	headers  http.Header
	resource object
	start    time.Time // of the counters
}

// object is a JSON object.
type object map[string]any

const (
	otlpTime  = 5 * time.Second // of one request
	otlpEvery = time.Minute
)

// Exports reports whether the environment names a collector.
func (c *Common) Exports() bool { return c.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" }

// newOTLP returns nil without an endpoint in the environment.
func (c *Common) newOTLP(program string) *otlp {
	if !c.Exports() {
		return nil
	}
	if name := c.Getenv("OTEL_SERVICE_NAME"); name != "" {
		program = name
	}
	own, _ := report.Version()
	endpoint := strings.TrimSuffix(c.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), "/")
	o := &otlp{url: endpoint + "/v1/metrics", start: time.Now(),
		headers: http.Header{"Content-Type": {"application/json"}, "User-Agent": {"quotabudget"}},
		resource: object{"attributes": []object{attribute("service.name", program),
			attribute("service.version", own)}}}
	for pair := range strings.SplitSeq(c.Getenv("OTEL_EXPORTER_OTLP_HEADERS"), ",") {
		name, value, ok := strings.Cut(pair, "=")
		if plain, err := url.PathUnescape(strings.TrimSpace(value)); ok && err == nil {
			o.headers.Set(strings.TrimSpace(name), plain)
		}
	}
	return o
}

// ExportMetrics sends the metrics to the environment's collector, if any, every minute until ctx
// ends, and once more at the end.
func (c *Common) ExportMetrics(ctx context.Context, program string, from prometheus.Gatherer) {
	o := c.newOTLP(program)
	if o == nil {
		return
	}
	every := otlpEvery
	if ms, err := strconv.Atoi(c.Getenv("OTEL_METRIC_EXPORT_INTERVAL")); err == nil && ms >= 100 {
		every = time.Duration(ms) * time.Millisecond
	}
	log := c.Logger()
	for away, more := false, true; more; {
		more = quota.Pause(ctx, every)
		switch err := o.send(context.WithoutCancel(ctx), from); {
		case err != nil && !away:
			log.Warn("cannot send metrics to OTEL_EXPORTER_OTLP_ENDPOINT, retrying", "error", err)
			away = true
		case err == nil && away:
			log.Info("sending metrics again")
			away = false
		}
	}
}

// ExportOnce sends the metrics once.
func (c *Common) ExportOnce(ctx context.Context, program string, from prometheus.Gatherer) {
	if o := c.newOTLP(program); o != nil {
		if err := o.send(context.WithoutCancel(ctx), from); err != nil {
			c.Logger().Warn("cannot send metrics to OTEL_EXPORTER_OTLP_ENDPOINT", "error", err)
		}
	}
}

// send sends the metrics that can be gathered.
func (o *otlp) send(ctx context.Context, from prometheus.Gatherer) error {
	families, err := from.Gather()
	if len(families) == 0 {
		return err
	}
	metrics := make([]object, 0, len(families))
	for _, family := range families {
		metrics = append(metrics, o.metric(family, time.Now()))
	}
	body, err := json.Marshal(object{"resourceMetrics": []object{{"resource": o.resource,
		"scopeMetrics": []object{{"scope": object{"name": "quotabudget"}, "metrics": metrics}}}}})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url, bytes.NewReader(body))
	if err != nil {
		return errors.New("must be a URL")
	}
	r.Header = o.headers
	response, _, err := untrusted.Fetch(http.Client{Timeout: otlpTime}, r, 4<<10)
	if response != nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s responds with %s", r.URL.Host, response.Status)
	}
	return err
}

func (o *otlp) metric(f *dto.MetricFamily, now time.Time) object {
	out := object{"name": f.GetName(), "description": f.GetHelp()}
	var points []object
	for _, m := range f.Metric {
		point := object{"startTimeUnixNano": nanos(o.start), "timeUnixNano": nanos(now)}
		var labels []object
		for _, l := range m.Label {
			labels = append(labels, attribute(l.GetName(), l.GetValue()))
		}
		point["attributes"] = labels
		switch f.GetType() {
		case dto.MetricType_COUNTER:
			point["asDouble"] = number(m.Counter.GetValue())
		case dto.MetricType_HISTOGRAM:
			buckets(point, m.Histogram)
		case dto.MetricType_SUMMARY:
			point["count"], point["sum"] = fmt.Sprint(m.Summary.GetSampleCount()),
				number(m.Summary.GetSampleSum())
		default:
			point["asDouble"] = number(m.GetGauge().GetValue() + m.GetUntyped().GetValue())
		}
		points = append(points, point)
	}
	const cumulative = 2
	switch data := (object{"dataPoints": points}); f.GetType() {
	case dto.MetricType_COUNTER:
		data["aggregationTemporality"], data["isMonotonic"] = cumulative, true
		out["sum"] = data
	case dto.MetricType_HISTOGRAM:
		data["aggregationTemporality"] = cumulative
		out["histogram"] = data
	case dto.MetricType_SUMMARY:
		out["summary"] = data
	default:
		out["gauge"] = data
	}
	return out
}

// buckets sets the counts of a histogram. Prometheus buckets are cumulative, OTLP's are not.
func buckets(point object, h *dto.Histogram) {
	counts, bounds, below := []string{}, []number{}, uint64(0)
	for _, b := range h.Bucket {
		if math.IsInf(b.GetUpperBound(), 1) {
			continue
		}
		bounds = append(bounds, number(b.GetUpperBound()))
		counts = append(counts, fmt.Sprint(b.GetCumulativeCount()-below))
		below = b.GetCumulativeCount()
	}
	point["bucketCounts"] = append(counts, fmt.Sprint(h.GetSampleCount()-below))
	point["explicitBounds"] = bounds
	point["count"], point["sum"] = fmt.Sprint(h.GetSampleCount()), number(h.GetSampleSum())
}

func attribute(name, value string) object {
	return object{"key": name, "value": object{"stringValue": value}}
}

// nanos is a time in OTLP JSON, in which 64-bit integers are strings.
func nanos(at time.Time) string { return strconv.FormatInt(at.UnixNano(), 10) }

// number is a double in OTLP JSON, in which "Infinity" is a string.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	switch f := float64(n); {
	case math.IsNaN(f):
		return []byte(`"NaN"`), nil
	case math.IsInf(f, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(f, -1):
		return []byte(`"-Infinity"`), nil
	default:
		return json.Marshal(f)
	}
}
