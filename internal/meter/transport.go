// Package meter is the gate on HTTP: what a request takes is charged, or set aside, before it is
// sent.
package meter

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// Transport is an http.RoundTripper that names the method of each request, charges it, adds the
// credential and sends it. Client libraries run on it unmodified; since every attempt and every
// page is a request, none goes uncounted. Its fields are set once before use.
//
// Where the price is known only after the call, what it may take is set aside instead, and the
// response is read as it passes: at its end the truth is booked. See exchange.
//
// A request with an Authorization, the OAuth token of a user, is charged all the same and goes
// without the credential, unless the upstream takes its credential there.
//
// What it refuses comes through *url.Error as quota.ErrNotSent together with the reason:
// quota.ErrExhausted (with a DeniedError), quota.ErrUnpriced, quota.ErrUnreachable and the other
// errors of Budget.Charge, ErrForeignHost, ErrInTheClear, ErrKeyInURL, ErrBodyTooLarge.
type Transport struct {
	Base   http.RoundTripper // sends: NewBase
	Budget *quota.Budget
	Table  *costs.Table // the upstream's price list
	Host   string       // the only host[:port] that is sent to, and given the credential
	Scheme string       // the only scheme for it; "" for any that nobody on the way can read
	// Method names the priced operation that a request is, by the Table unless it says otherwise.
	Method    func(*http.Request) (string, error)
	Key       func() (string, error) // the credential; it goes to its place, and nowhere else
	Estimates Estimates              // of calls whose price is known only after them
	Drain     Drain
	Missed    func(method string) // counts answers that do not say what they took; may be nil
	// Proxied means that callers never see our key: a refused key is logged here, because callers
	// would suspect their own.
	Proxied bool
	Log     *slog.Logger

	open     atomic.Int64 // calls still to be read or booked
	reading  atomic.Int64 // responses read for callers that disconnected
	unlisted atomic.Int64 // facts without a row that were logged
	samples  samples
	warned   sync.Map // warnings already logged, by their subject; and resets by limit
}

// What Transport refuses by itself.
var (
	ErrForeignHost  = errors.New("request is not for the upstream")
	ErrInTheClear   = errors.New("request would send the key unencrypted")
	ErrKeyInURL     = errors.New("request carries a key in its URL")
	ErrBodyTooLarge = errors.New("request's body is too large to be priced")
)

const settleTime = 5 * time.Second // for one settlement after the request has ended

// NewBase is the transport that sends for us. It speaks HTTP/1.1 only: an HTTP/2 client sends
// requests again by itself when a server refuses a stream, and each would have to be charged.
func NewBase() *http.Transport {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.ForceAttemptHTTP2 = false
	base.Protocols = new(http.Protocols)
	base.Protocols.SetHTTP1(true)
	base.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	base.TLSClientConfig = nil // the clone's would still offer HTTP/2 to the server
	base.ResponseHeaderTimeout = 30 * time.Second
	base.MaxResponseHeaderBytes = 1 << 20
	base.MaxIdleConnsPerHost = base.MaxIdleConns // there is only one host; the default is 2
	return base
}

// RoundTrip charges the request and sends it once. A request that continues an upload is not
// charged if the upload was.
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

// closing ends a request that is not sent: a RoundTripper must close the body whatever happens.
func closing(r *http.Request, err error) error {
	if r.Body != nil {
		r.Body.Close()
	}
	return err
}

// admit decides what a request is, before anything is charged.
func (t *Transport) admit(r *http.Request) (*exchange, error) {
	scheme, host := r.URL.Scheme, r.URL.Host
	e := &exchange{gate: t, r: r}
	e.call, _ = r.Context().Value(callKey{}).(quota.Call)
	var err error
	switch {
	case host != t.Host || t.Scheme != "" && scheme != t.Scheme:
		err = fmt.Errorf("%w: %s://%s is not %s://%s", ErrForeignHost, scheme, host,
			cmp.Or(t.Scheme, scheme), t.Host)
	case !costs.Private(r.URL):
		err = fmt.Errorf("%w: http:// is for this machine only, %s needs https://",
			ErrInTheClear, host)
	default:
		err = t.checkQuery(r.URL.RawQuery)
	}
	if err == nil {
		e.call.Method, err = t.Method(r)
	}
	if err == nil {
		e.key, err = t.Key()
	}
	return e, err
}

// maxHints is how many answers with a status of 1xx may come before the answer.
const maxHints = 10

// transmit sends the request once, and notes when any of it can have left this machine.
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
	out := r.Clone(httptrace.WithClientTrace(ctx, trace))
	out.URL.RawQuery = withoutMark(r.URL.RawQuery)
	t.addCredential(out, e.key)
	// net/http asks for gzip by itself and unpacks it, so that the key can be found in the response.
	out.Header.Del("Accept-Encoding")
	if out.Method == http.MethodHead || out.Header.Get("Range") != "" { // here it does not
		out.Header.Set("Accept-Encoding", "identity")
	}
	once(out)
	resp, err := t.Base.RoundTrip(out)
	switch {
	case err != nil:
		return nil, hideIn(err, e.key)
	// nobody has asked it to switch protocols, and such a connection would have no end
	case resp.StatusCode <= 101 || resp.StatusCode > 999:
		resp.Body.Close()
		return nil, fmt.Errorf("the upstream answered with the status %d", resp.StatusCode)
	case resp.Body != http.NoBody:
		resp.Body = hiding{resp.Body, resp, e.key}
	}
	hideKey(resp.Header, e.key)
	return resp, nil
}

// once keeps net/http from sending the request a second time when a kept connection turns out to be
// dead: one charge, two requests on the wire. It does so if there is no body or it can get another,
// so such a request is given a body that is empty but not known to be; with the identity encoding,
// nothing of it reaches the wire.
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

// WithCall makes requests under ctx be charged as call says: its labels, whether a person asks, a
// reservation to draw on. The method is named from each request; an idempotency key must not be
// given to more than one request.
func WithCall(ctx context.Context, call quota.Call) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}
