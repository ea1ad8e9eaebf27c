package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
)

// A job with a url is run as this program, so that there is one way in which jobs are run. The
// request is in a variable: others can read arguments.
const (
	requestName     = "request"
	requestVariable = "INGESTOR_REQUEST"
	mostAnswer      = 64 << 10 // bytes of an answer that are written
)

func encodeRequest(r config.Request) string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // three texts
	}
	return string(text)
}

func requestCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: requestName, Short: "Send the request of a job", Hidden: true, Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			var r config.Request
			if err := json.Unmarshal([]byte(a.Getenv(requestVariable)), &r); err != nil {
				return cli.Usagef("%s: %w", requestVariable, err)
			}
			return a.request(c.Context(), r)
		},
	}
}

// request sends a request and writes the response. It returns an error unless the status is in
// r.Success or, if that is empty, is 2xx without a redirect.
func (a *app) request(ctx context.Context, r config.Request) error {
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, strings.NewReader(r.Body))
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "ingestor")
	if json.Valid([]byte(r.Body)) {
		request.Header.Set("Content-Type", "application/json")
	}
	host := request.URL.Host
	client := requestClient(request, r.Success)
	response, err := client.Do(request)
	if err != nil {
		var of *url.Error // which would repeat the URL, with what is secret in it
		if errors.As(err, &of) {
			err = of.Err
		}
		err = fmt.Errorf("%s: %w", host, err)
		for _, refused := range []error{errOtherHost, errOtherMethod, errInward} {
			if errors.Is(err, refused) {
				return err
			}
		}
		return &cli.Coded{Code: cli.ExitUnavailable, Err: err}
	}
	defer response.Body.Close()
	if _, err := io.Copy(a.Stdout, io.LimitReader(response.Body, mostAnswer)); err != nil {
		return err
	}
	redirected := response.Request != request
	switch {
	case slices.Contains(r.Success, response.StatusCode):
		return nil
	case len(r.Success) > 0 || response.StatusCode/100 != 2:
		return fmt.Errorf("%s responds with %s", host, response.Status)
	case redirected:
		return cli.Hint(fmt.Errorf("%s responds with %s after a redirect", host, response.Status),
			"write the address that it redirects to, or list the status in success:")
	}
	return nil
}

// maxRedirects bounds the redirects of a request.
const maxRedirects = 5

var (
	errOtherHost   = errors.New("redirects to another host are not followed")
	errOtherMethod = errors.New("a redirect that changes the method is not followed")
	errInward      = errors.New("address is on this machine or its link: name it in the url to allow it")
)

// requestClient returns a client for the first request of a job. It follows redirects within the
// host that keep the method, and sends no Referer. It does not connect to loopback and link-local
// addresses unless the URL of the job names one: the address is checked when it is dialed, because
// a name may lead anywhere.
func requestClient(first *http.Request, success []int) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	proxy, _ := http.ProxyFromEnvironment(first) // the request returns the same error
	if !namesInward(first.URL.Hostname()) {
		transport.DialContext = func(ctx context.Context, network, address string) (
			net.Conn, error) {
			dialer := &net.Dialer{Timeout: 30 * time.Second, Control: refuseInward}
			if proxy != nil && address == net.JoinHostPort(proxy.Hostname(), portOf(proxy)) {
				dialer.Control = nil // the proxy may be on this machine
			}
			return dialer.DialContext(ctx, network, address)
		}
	}
	return &http.Client{Transport: transport,
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			next.Header.Del("Referer")
			switch {
			case slices.Contains(success, next.Response.StatusCode):
				return http.ErrUseLastResponse
			case !sameHost(via[0].URL, next.URL):
				return errOtherHost
			case next.Method != via[0].Method:
				return errOtherMethod
			case len(via) > maxRedirects:
				return fmt.Errorf("more than %d redirects", maxRedirects)
			}
			return nil
		}}
}

// sameHost reports whether a redirect stays at the host and port, or goes from HTTP to HTTPS there.
func sameHost(from, to *url.URL) bool {
	secured := from.Scheme == "http" && to.Scheme == "https" && portOf(from) == "80" &&
		portOf(to) == "443"
	return strings.EqualFold(from.Hostname(), to.Hostname()) &&
		(secured || from.Scheme == to.Scheme && portOf(from) == portOf(to))
}

// portOf returns the port of a URL, or that of its scheme.
func portOf(u *url.URL) string {
	ports := map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}
	return cmp.Or(u.Port(), ports[u.Scheme])
}

// namesInward reports whether a URL's host is a loopback or link-local address, or localhost.
func namesInward(host string) bool {
	address, err := netip.ParseAddr(host)
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	return err == nil && inward(address) || name == "localhost" ||
		strings.HasSuffix(name, ".localhost")
}

// inward reports whether an address is on this machine or its link, where cloud providers serve
// credentials. An unspecified address reaches this machine.
func inward(address netip.Addr) bool {
	address = address.Unmap()
	return address.IsLoopback() || address.IsLinkLocalUnicast() || address.IsUnspecified()
}

// refuseInward implements net.Dialer.Control.
func refuseInward(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || inward(to.Addr()) {
		return errInward
	}
	return nil
}
