// Package meter charges HTTP requests, or sets units aside for them, before they are sent.
package meter

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// Transport is an http.RoundTripper that names the method of each request, charges it, adds the
// credential and sends it. Client libraries work with it unmodified. Every attempt and every page
// is a request, so each is counted. Its fields are set once before use.
//
// If the price is known only after the call, it sets an estimate aside instead, observes the
// response while the caller reads it, and then books the actual usage. See exchange.
//
// A request with a user's OAuth token in Authorization is also charged, but sent without the
// credential, unless the upstream takes the credential in that header.
//
// A refusal is an error that wraps quota.ErrNotSent and the reason, inside the client's *url.Error:
// quota.ErrExhausted (with a DeniedError), quota.ErrUnpriced, quota.ErrUnreachable and the other
// errors of Budget.Charge, ErrForeignHost, ErrInTheClear, ErrKeyInURL, ErrBodyTooLarge.
type Transport struct {
	Base   http.RoundTripper // sends the requests: see NewBase
	Budget *quota.Budget
	Table  *costs.Table // the upstream's price list
	// Endpoint has the only scheme and host that requests and the credential are sent to.
	Endpoint  *url.URL
	Key       func() (string, error) // returns the credential, for each request
	Estimates Estimates              // for calls whose price is known only afterwards
	Drain     Drain
	Missed    func(method string) // counts responses without usage; may be nil
	// Proxied means that callers never see our key. A refused key is then logged here, because
	// callers would suspect their own.
	Proxied bool
	Log     *slog.Logger

	open     atomic.Int64 // calls still to be read or booked
	reading  atomic.Int64 // responses read for callers that disconnected
	unlisted atomic.Int64 // number of logged facts without a row
	samples  samples
	warned   sync.Map // subjects of warnings already logged
	resets   sync.Map // last reset that the upstream reported, by the name of the limit
}

// Errors of requests that Transport refuses.
var (
	ErrForeignHost  = errors.New("request is not for the upstream")
	ErrInTheClear   = errors.New("request would send the key unencrypted")
	ErrKeyInURL     = errors.New("request carries a key in its URL")
	ErrBodyTooLarge = errors.New("request's body is too large to be priced")
)

// slow is how long an upstream may take to begin the response to a call of unknown price: models
// write for minutes before they respond, unless they stream.
const slow = 10 * time.Minute

// New returns a Transport for the upstream at address. The table names and prices its requests and
// responses; key reads the credential for each request.
func New(address string, table *costs.Table, budget *quota.Budget, key func() (string, error),
	log *slog.Logger) (*Transport, error) {
	u, err := costs.ParseEndpoint(address)
	if err != nil {
		return nil, fmt.Errorf("%s endpoint: %w", table.Upstream, err)
	}
	base := NewBase()
	if slices.ContainsFunc(table.Methods(), func(m costs.Method) bool { return !m.Known() }) {
		base.ResponseHeaderTimeout = slow
	}
	t := &Transport{Base: base, Budget: budget, Endpoint: u, Key: key, Log: log}
	t.Table = table.WithFiles(t.file)
	return t, nil
}

const settleTime = 5 * time.Second // for one settlement after the request has ended

// NewBase returns the transport that sends the requests. It uses only HTTP/1.1, because an HTTP/2
// client resends a request, uncharged, when the server refuses a stream.
func NewBase() *http.Transport {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.ForceAttemptHTTP2 = false
	base.Protocols = new(http.Protocols)
	base.Protocols.SetHTTP1(true)
	base.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	base.TLSClientConfig = nil // the cloned one would still offer HTTP/2 to the server
	base.ResponseHeaderTimeout = 30 * time.Second
	base.MaxResponseHeaderBytes = 1 << 20
	base.MaxIdleConnsPerHost = base.MaxIdleConns // there is only one host; the default is 2
	return base
}

// RoundTrip charges the request and sends it once. A request that continues a charged upload is not
// charged again.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	e, err := t.admit(r)
	if err != nil {
		return nil, closing(r, fmt.Errorf("request %w: %w", quota.ErrNotSent, err))
	}
	if err = e.price(); err == nil {
		err = e.take()
	}
	switch {
	case err != nil:
		return nil, closing(r, fmt.Errorf("%s %w: %w", e.call.Method, quota.ErrNotSent, err))
	case e.quote.Known:
		return e.sendKnown()
	}
	return e.sendHeld()
}

// closing closes the body of a request that is not sent, as a RoundTripper must, and returns err.
func closing(r *http.Request, err error) error {
	if r.Body != nil {
		r.Body.Close()
	}
	return err
}

// admit checks a request and names its method, before anything is charged.
func (t *Transport) admit(r *http.Request) (*exchange, error) {
	scheme, host, own := r.URL.Scheme, r.URL.Host, t.Endpoint
	e := &exchange{gate: t, r: r, cancel: func(context.Context) error { return nil }}
	e.call, _ = r.Context().Value(callKey{}).(quota.Call)
	var err error
	switch {
	case host != own.Host || scheme != own.Scheme:
		err = fmt.Errorf("%w: %s://%s is not %s://%s", ErrForeignHost, scheme, host, own.Scheme,
			own.Host)
	case !costs.Private(r.URL):
		err = fmt.Errorf("%w: http:// is for this machine only, %s needs https://",
			ErrInTheClear, host)
	default:
		err = t.checkQuery(r.URL.RawQuery)
	}
	if err == nil {
		e.call.Method, err = t.Table.Method(r)
	}
	if err == nil {
		e.key, err = t.Key()
	}
	return e, err
}

// maxHints is the maximum number of 1xx responses before the final one.
const maxHints = 10

// transmit sends the request once, and records when any of it may have left this machine.
func (e *exchange) transmit(ctx context.Context) (*http.Response, error) {
	t, r, hints := e.gate, e.r, 0
	trace := &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { e.reach(sent) },
		Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
			clear(h) // hints are for browsers, and could repeat the key
			if hints++; hints > maxHints {
				return errors.New("it sends hints without end")
			}
			return nil
		},
	}
	out := r.Clone(httptrace.WithClientTrace(untraced{ctx}, trace))
	// The mark of a paid upload is not for the upstream.
	pairs := slices.DeleteFunc(strings.Split(r.URL.RawQuery, "&"), func(pair string) bool {
		return strings.HasPrefix(pair, paidParam+"=")
	})
	out.URL.RawQuery = strings.Join(pairs, "&")
	t.addCredential(out, e.key)
	// Without this header, net/http requests gzip and unpacks it, so that the key can be found.
	out.Header.Del("Accept-Encoding")
	if out.Method == http.MethodHead || out.Header.Get("Range") != "" { // net/http does not here
		out.Header.Set("Accept-Encoding", "identity")
	}
	once(out)
	resp, err := t.Base.RoundTrip(out)
	switch {
	case err != nil:
		return nil, hideIn(err, e.key)
	// no request asks to switch protocols, and such a connection would never end
	case resp.StatusCode <= 101 || resp.StatusCode > 999:
		resp.Body.Close()
		return nil, fmt.Errorf("the upstream answered with the status %d", resp.StatusCode)
	case resp.Body != http.NoBody:
		resp.Body = hiding{resp.Body, resp, e.key}
	}
	hideKey(resp.Header, e.key)
	return resp, nil
}

// untraced hides the caller's trace. Its result for a hint would replace our error, and the trace
// of httputil.ReverseProxy accepts every hint and passes it on.
type untraced struct{ context.Context }

func (u untraced) Value(key any) any {
	value := u.Context.Value(key)
	if _, ok := value.(*httptrace.ClientTrace); ok {
		return nil
	}
	return value
}

// once keeps net/http from resending the request, uncharged, when an idle connection turns out to
// be dead. net/http resends a request without a body, or whose body it can get again. once gives
// such a request an empty body of unknown length. With the identity encoding, this does not change
// the bytes on the wire.
func once(r *http.Request) {
	r.GetBody = nil
	_, keyed := r.Header["Idempotency-Key"]
	_, keyedX := r.Header["X-Idempotency-Key"]
	repeatable := keyed || keyedX ||
		slices.Contains([]string{"", "GET", "HEAD", "OPTIONS", "TRACE"}, r.Method)
	if repeatable && (r.Body == nil || r.Body == http.NoBody) {
		r.Body = io.NopCloser(bytes.NewReader(nil))
		r.ContentLength = -1
		r.TransferEncoding = []string{"identity"}
	}
}

type callKey struct{}

// WithCall returns a context whose requests are charged with the call's labels, priority and
// reservation. Each request determines its method. Use an idempotency key for one request only.
func WithCall(ctx context.Context, call quota.Call) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}
