package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"quotabudget/internal/costs"
	"quotabudget/internal/limit"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
)

// domain is the ErrorInfo domain of our errors, which Google's clients show.
const domain = "quotabudget"

// refusal is the error response to a request that the upstream did not answer.
type refusal struct {
	status int
	reason string // for programs, in Google's spelling: quotaExceeded
	title  string
	detail string      // what happened, and what to do
	header http.Header // sent with the refusal
	limit  string      // of a denial
	retry  string      // of a denial: when to retry
}

func refusef(status int, reason, title, format string, args ...any) *refusal {
	return &refusal{status: status, reason: reason, title: title,
		detail: fmt.Sprintf(format, args...)}
}

// with sets a header of the refusal.
func (f *refusal) with(name, value string) *refusal {
	f.header = http.Header{name: {value}}
	return f
}

// Error returns the detail.
func (f *refusal) Error() string { return f.detail }

// document is the body of a refusal: an error in the form that clients of the upstream look for,
// and an RFC 9457 problem.
type document struct {
	Error   any              `json:"error"`
	Message string           `json:"message,omitempty"` // where GitHub's clients look for it
	Type    string           `json:"type"`
	Title   string           `json:"title"`
	Status  int              `json:"status"`
	Detail  string           `json:"detail"`
	Denies  []string         `json:"violated-policies,omitempty"`
	Limit   string           `json:"limit,omitempty"`
	Retry   string           `json:"retry_at,omitempty"`
	After   int64            `json:"retry_after_seconds,omitempty"`
	Charged map[string]int64 `json:"charged"` // units by bucket that were charged nevertheless
}

// googleError is the form of Google's APIs.
type googleError struct {
	Code    int           `json:"code"`
	Message string        `json:"message"`
	Status  string        `json:"status"`
	Errors  []googleItem  `json:"errors"`
	Details []errorDetail `json:"details"`
}

// plainError is the form of most other APIs, with the words of OpenAI and Anthropic.
type plainError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    string `json:"code"`
}

type googleItem struct {
	Message string `json:"message"`
	Domain  string `json:"domain"`
	Reason  string `json:"reason"`
}

// errorDetail is a google.rpc.ErrorInfo.
type errorDetail struct {
	Type     string            `json:"@type"`
	Reason   string            `json:"reason"`
	Domain   string            `json:"domain"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

const problemType = "application/problem+json"

func (x *exchange) refuse(err error) {
	f := refusalOf(err)
	if f.reason == "unpriced" && x.misnamed() {
		f = refusef(f.status, f.reason, f.title, "%v, and %s", err, x.noUpstream())
	}
	x.outcome, x.failure = f.outcome(), err
	h := x.w.Header()
	maps.Copy(h, f.header)
	h.Set("Content-Type", "application/json; charset=utf-8")
	if wantsProblem(x.r) {
		h.Set("Content-Type", problemType)
	}
	h.Add("Vary", "Accept")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if denied, ok := errors.AsType[*quota.DeniedError](err); ok {
		limit.SetQuotaHeader(h, x.up.Transport.Budget, denied.Decision, x.caller.Manual,
			f.limit)
		if room, remedy := x.up.Transport.Budget.DayRoom(x.r.Context(), x.caller.Manual,
			denied.Decision, x.amount); room != "" {
			f.detail += "; " + room + "; " + remedy
		}
	}
	if f.status == http.StatusTooManyRequests && f.after() > patientSDK {
		h.Set("X-Should-Retry", "false") // a retry cannot succeed
	}
	x.w.WriteHeader(f.status)
	json.NewEncoder(x.w).Encode(f.document(x.charged(), x.proxy.asGoogle(x.up)))
}

// amount returns units of a bucket in words.
func (x *exchange) amount(bucket string, units int64) string {
	b, _ := x.up.table().Bucket(bucket)
	return b.Unit.Text(units) + " of " + bucket
}

// statusGone is logged for a request whose caller has disconnected.
const statusGone = 499

// outcome returns the outcome for the log and the metrics.
func (f *refusal) outcome() string {
	switch {
	case f.limit != "":
		return outcomeDenied
	case f.status == statusGone:
		return outcomeBroken
	case f.status >= http.StatusInternalServerError && f.status != http.StatusServiceUnavailable:
		return outcomeFailed
	}
	return outcomeRefused
}

// patientSDK is the maximum Retry-After, in seconds, that the clients of OpenAI and Anthropic obey.
// If it is longer, they retry earlier.
const patientSDK = 60

// after returns the Retry-After in seconds, 0 for none.
func (f *refusal) after() int64 {
	n, _ := strconv.ParseInt(f.header.Get("Retry-After"), 10, 64)
	return n
}

// asGoogle reports whether the upstream, or else the first one, is an API of Google.
func (p *Proxy) asGoogle(u *Upstream) bool {
	if u == nil {
		u = p.Upstreams[0]
	}
	return slices.ContainsFunc(u.table().Hosts, func(host string) bool {
		return strings.HasSuffix(host, ".googleapis.com")
	})
}

func (f *refusal) document(charged map[string]int64, google bool) document {
	detail := f.detail
	if len(charged) > 0 {
		detail += "; the request was charged, since it may have reached the upstream"
	}
	d := document{Type: f.problemType(), Title: f.title, Status: f.status, Detail: detail,
		Limit: f.limit, Retry: f.retry, Charged: charged}
	d.After = f.after()
	if d.Type == limit.QuotaExceeded {
		d.Denies = []string{f.limit}
	}
	if !google {
		d.Message = detail
		d.Error = plainError{detail, errorType(f.status), strings.ToLower(upperSnake(f.reason))}
		return d
	}
	info := errorDetail{Type: "type.googleapis.com/google.rpc.ErrorInfo",
		Reason: upperSnake(f.reason), Domain: domain}
	if f.limit != "" {
		info.Metadata = map[string]string{"limit": f.limit}
		if f.retry != "" {
			info.Metadata["retry_at"] = f.retry
		}
	}
	d.Error = googleError{Code: f.status, Message: detail, Status: rpcStatus(f.status),
		Errors: []googleItem{{detail, domain, f.reason}}, Details: []errorDetail{info}}
	return d
}

// problemType returns the type of the problem: for a denial, or for a temporary problem.
func (f *refusal) problemType() string {
	switch {
	case f.limit == quota.Suspended, f.status == http.StatusServiceUnavailable:
		return limit.ReducedCapacity
	case f.limit != "":
		return limit.QuotaExceeded
	}
	return "about:blank"
}

// errorType returns the word for a status in a plainError.
func errorType(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusNotFound:
		return "not_found_error"
	case status >= http.StatusInternalServerError:
		return "api_error"
	}
	return "invalid_request_error"
}

// wantsProblem reports whether the caller asked for application/problem+json by name.
func wantsProblem(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err == nil && kind == problemType && params["q"] != "0" {
			return true
		}
	}
	return false
}

// refusalOf returns the refusal for an error. An unknown error is a failure to reach the upstream.
func refusalOf(err error) *refusal {
	if f, ok := errors.AsType[*refusal](err); ok {
		return f
	}
	if denied, ok := errors.AsType[*quota.DeniedError](err); ok {
		return denial(denied.Decision, err)
	}
	if wrong, ok := errors.AsType[*costs.VerbError](err); ok {
		return refusef(http.StatusMethodNotAllowed, "methodNotAllowed", "method is not allowed",
			"%v", wrong).with("Allow", strings.Join(wrong.Allowed, ", "))
	}
	if errors.Is(err, context.Canceled) {
		return refusef(statusGone, "callerGone", "caller disconnected",
			"the caller disconnected before the response")
	}
	if unclear, ok := errors.AsType[*costs.AmbiguousError](err); ok {
		return ambiguous("%v", unclear)
	}
	if unclear, ok := errors.AsType[*costs.PriceError](err); ok {
		return refusef(http.StatusBadRequest, "unpriceable", "request cannot be priced", "%v",
			unclear)
	}
	for _, row := range gateErrors {
		if errors.Is(err, row.err) {
			return refusef(row.status, row.reason, row.title, "%v%s", err, row.hint)
		}
	}
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		return refusef(http.StatusGatewayTimeout, "upstreamTimeout",
			"upstream did not answer in time", "%v", err)
	}
	return refusef(http.StatusBadGateway, "upstreamUnreachable", "upstream cannot be reached",
		"%v", err)
}

// ambiguous refuses a request that the upstream could read differently than the proxy.
func ambiguous(format string, args ...any) *refusal {
	return refusef(http.StatusBadRequest, "ambiguousRequest", "request is ambiguous",
		"the upstream could read the request differently than it would be charged: "+format,
		args...)
}

// gateErrors maps errors of the gate to refusals, with a hint for the message. The first match
// counts.
var gateErrors = []struct {
	err                 error
	status              int
	reason, title, hint string
}{
	{quota.ErrCostExceedsLimit, http.StatusUnprocessableEntity, "costExceedsLimit",
		"cost exceeds the limit",
		": ask for less; for a model, lower max_tokens (max_completion_tokens)"},
	{meter.ErrBodyTooLarge, http.StatusRequestEntityTooLarge, "bodyTooLarge",
		"request is too large", ""},
	{quota.ErrNotAllowed, http.StatusForbidden, "callerNotAllowed", "caller is not allowed", ""},
	{quota.ErrUnpriced, http.StatusNotFound, "unpriced", "method has no price",
		": quotactl costs --upstream NAME lists the methods with their routes"},
	{quota.ErrNoBucket, http.StatusNotFound, "noBucket", "bucket has no limit", ""},
	{quota.ErrUnreachable, http.StatusServiceUnavailable, "ledgerUnreachable",
		"ledger cannot be reached", ""},
	{quota.ErrLedgerUnusable, http.StatusServiceUnavailable, "ledgerUnusable",
		"ledger cannot be used", ""},
	{quota.ErrNotSent, http.StatusInternalServerError, "notSent", "request was not sent", ""},
}

// denial returns the refusal of a charge that does not fit now. Google's clients take its reason
// for an exhausted day, and do not retry at once.
func denial(d quota.Decision, err error) *refusal {
	f := refusef(http.StatusTooManyRequests, "quotaExceeded", "quota exhausted", "%v", err)
	f.limit = d.Limit
	if !d.RetryAt.IsZero() {
		f.with("Retry-After", strconv.Itoa(int(math.Ceil(d.RetryAfter().Seconds()))))
		f.retry = d.RetryAt.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	if d.Limit == quota.PaceName {
		f.reason, f.title = "heldBackByPace", "held back by the pace"
	}
	return f
}

// rpcStatus returns the name of the google.rpc code for an HTTP status.
func rpcStatus(status int) string {
	return cmp.Or(map[int]string{
		http.StatusUnauthorized:        "UNAUTHENTICATED",
		http.StatusForbidden:           "PERMISSION_DENIED",
		http.StatusNotFound:            "NOT_FOUND",
		http.StatusRequestTimeout:      "DEADLINE_EXCEEDED",
		http.StatusUnprocessableEntity: "FAILED_PRECONDITION",
		http.StatusTooManyRequests:     "RESOURCE_EXHAUSTED",
		http.StatusInternalServerError: "INTERNAL",
		http.StatusBadGateway:          "UNAVAILABLE",
		http.StatusServiceUnavailable:  "UNAVAILABLE",
		http.StatusGatewayTimeout:      "DEADLINE_EXCEEDED",
	}[status], "INVALID_ARGUMENT")
}

func upperSnake(word string) string {
	var b strings.Builder
	for _, r := range word {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}
