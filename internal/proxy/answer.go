package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	"quotabudget/internal/words"
)

// domain is the ErrorInfo domain of our errors, which Google's clients show.
const domain = "quotabudget"

// refusal is the error response to a request that the upstream did not answer.
type refusal struct {
	limit.Problem             // without its type; the detail says what happened, and what to do
	reason        string      // for programs, in Google's spelling: quotaExceeded
	header        http.Header // sent with the refusal
	limit         string      // the limit that denied; "" for other refusals
	retry         string      // when to retry after a denial; "" for other refusals
}

func refusef(status int, reason, title, format string, args ...any) *refusal {
	return &refusal{reason: reason, Problem: limit.Problem{Title: title, Status: status,
		Detail: fmt.Sprintf(format, args...)}}
}

func (f *refusal) with(name, value string) *refusal {
	f.header = http.Header{name: {value}}
	return f
}

// Error returns the detail.
func (f *refusal) Error() string { return f.Detail }

// document is the body of a refusal: an error in the form that clients of the upstream look for,
// and an RFC 9457 problem.
type document struct {
	Error   any    `json:"error"`
	Message string `json:"message,omitempty"` // where GitHub's clients look for it
	limit.Problem
	Limit   string           `json:"limit,omitempty"`
	Retry   string           `json:"retry_at,omitempty"`
	After   int64            `json:"retry_after_seconds,omitempty"`
	Charged map[string]int64 `json:"charged"` // units that were charged nevertheless, by bucket
}

const problemType = "application/problem+json"

func (x *exchange) refuse(err error) {
	f := refusalOf(err)
	if f.reason == "unpriced" && x.misnamed() {
		f = refusef(f.Status, f.reason, f.Title, "%v, and %s", err, x.noUpstream())
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
		limit.SetQuotaHeader(h, x.up.Budget, denied.Decision, x.caller.Manual,
			f.limit)
		if room, remedy := x.up.Budget.DayRoom(x.r.Context(), x.caller.Manual,
			denied.Decision, x.amount); room != "" {
			f.Detail += "; " + room + "; " + remedy
		}
	}
	// A call in flight may free units earlier, but without this header some libraries sleep until
	// Retry-After, which may be tomorrow.
	if f.Status == http.StatusTooManyRequests && f.after() > patientSDK {
		h.Set("X-Should-Retry", "false")
	}
	x.w.WriteHeader(f.Status)
	json.NewEncoder(x.w).Encode(f.document(x.charged(), x.proxy.asGoogle(x.up)))
}

func (x *exchange) amount(bucket string, units int64) string {
	b, _ := x.up.Table.Bucket(bucket)
	return b.Unit.Text(units) + " of " + bucket
}

// statusGone is logged for a request whose caller has disconnected.
const statusGone = 499

func (f *refusal) outcome() string {
	switch {
	case f.limit != "":
		return outcomeDenied
	case f.Status == statusGone:
		return outcomeBroken
	case f.Status >= http.StatusInternalServerError && f.Status != http.StatusServiceUnavailable:
		return outcomeFailed
	}
	return outcomeRefused
}

// patientSDK is the maximum Retry-After, in seconds, for which the libraries of OpenAI and
// Anthropic are left to wait. Some versions retry before the end of a longer one, others sleep for
// all of it (openai 6.49, @anthropic-ai/sdk 1.12).
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
	return slices.ContainsFunc(u.Table.Hosts, func(host string) bool {
		return strings.HasSuffix(host, ".googleapis.com")
	})
}

func (f *refusal) document(charged map[string]int64, google bool) document {
	d := document{Problem: f.Problem, Limit: f.limit, Retry: f.retry, After: f.after(),
		Charged: charged}
	if len(charged) > 0 {
		d.Detail += "; the request was charged, because it may have reached the upstream"
	}
	switch {
	case f.limit == quota.Suspended, f.Status == http.StatusServiceUnavailable:
		d.Type = limit.ReducedCapacity
	case f.limit != "":
		d.Type, d.Violated = limit.QuotaExceeded, []string{f.limit}
	default:
		d.Type = "about:blank"
	}
	words, listed := statusWords[f.Status]
	if !listed {
		words = statusWords[http.StatusBadRequest]
	}
	if !google {
		d.Message = d.Detail
		d.Error = map[string]any{"message": d.Detail, "type": words.plain,
			"code": strings.ToLower(upperSnake(f.reason))}
		return d
	}
	info := map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo",
		"reason": upperSnake(f.reason), "domain": domain}
	if f.limit != "" {
		metadata := map[string]string{"limit": f.limit}
		if f.retry != "" {
			metadata["retry_at"] = f.retry
		}
		info["metadata"] = metadata
	}
	item := map[string]any{"message": d.Detail, "domain": domain, "reason": f.reason}
	d.Error = map[string]any{"code": f.Status, "message": d.Detail, "status": words.google,
		"errors": []any{item}, "details": []any{info}}
	return d
}

// statusWords are the words for a status: the code of google.rpc in the errors of Google's APIs,
// and the type in the errors of OpenAI, Anthropic and most others.
var statusWords = map[int]struct{ google, plain string }{
	http.StatusBadRequest:          {"INVALID_ARGUMENT", "invalid_request_error"},
	http.StatusUnauthorized:        {"UNAUTHENTICATED", "authentication_error"},
	http.StatusForbidden:           {"PERMISSION_DENIED", "permission_error"},
	http.StatusNotFound:            {"NOT_FOUND", "not_found_error"},
	http.StatusRequestTimeout:      {"DEADLINE_EXCEEDED", "invalid_request_error"},
	http.StatusUnprocessableEntity: {"FAILED_PRECONDITION", "invalid_request_error"},
	http.StatusTooManyRequests:     {"RESOURCE_EXHAUSTED", "rate_limit_error"},
	http.StatusInternalServerError: {"INTERNAL", "api_error"},
	http.StatusBadGateway:          {"UNAVAILABLE", "api_error"},
	http.StatusServiceUnavailable:  {"UNAVAILABLE", "api_error"},
	http.StatusGatewayTimeout:      {"DEADLINE_EXCEEDED", "api_error"},
}

// wantsProblem reports whether the caller accepts application/problem+json by name.
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
	if errors.Is(err, context.Canceled) { // a PriceError can wrap it
		return refusef(statusGone, "callerGone", "caller disconnected", "%v", err)
	}
	if denied, ok := errors.AsType[*quota.DeniedError](err); ok {
		return denial(denied.Decision, err)
	}
	if wrong, ok := errors.AsType[*costs.VerbError](err); ok {
		return refusef(http.StatusMethodNotAllowed, "methodNotAllowed", "method is not allowed",
			"%v", wrong).with("Allow", strings.Join(wrong.Allowed, ", "))
	}
	if unclear, ok := errors.AsType[*costs.AmbiguousError](err); ok {
		return ambiguous("%v", unclear)
	}
	if unclear, ok := errors.AsType[*costs.PriceError](err); ok {
		status := http.StatusBadRequest
		if errors.Is(err, quota.ErrJournal) { // a retry may succeed
			status = http.StatusServiceUnavailable
		}
		return refusef(status, "unpriceable", "request cannot be priced", "%v", unclear)
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

// gateErrors maps the gate's errors to refusals, with a hint for the message. The first match
// applies.
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

// denial returns the refusal of a charge that does not fit now. Google's clients read its reason as
// an exhausted day, and do not retry at once.
func denial(d quota.Decision, err error) *refusal {
	f := refusef(http.StatusTooManyRequests, "quotaExceeded", "quota exhausted", "%v", err)
	f.limit = d.Limit
	if !d.RetryAt.IsZero() {
		f.with("Retry-After", strconv.FormatInt(words.Seconds(d.RetryAfter()), 10))
		f.retry = words.Time(d.RetryAt).String()
	}
	if d.Limit == quota.PaceName {
		f.reason, f.Title = "heldBackByPace", "held back by the pace"
	}
	return f
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
