package costs

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

var (
	errForm = errors.New(
		"write https://HOST/, or http://127.0.0.1:8080/ for a stand-in")
	errMore  = errors.New("write scheme, host and path alone: a key is never part of a URL")
	errClear = errors.New("http:// would send the API key unencrypted: write https://; " +
		"http:// is for a stand-in on 127.0.0.1, ::1 or localhost")
)

// ParseEndpoint parses the address of an upstream, such as https://api.example.com/. Its path ends
// in a slash. Errors do not repeat the text, which may be a misplaced secret.
func ParseEndpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "https" && u.Scheme != "http",
		u.Hostname() == "", strings.HasSuffix(u.Host, ":"):
		return nil, errForm
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errMore
	case !Private(u):
		return nil, errClear
	}
	if !strings.HasSuffix(u.Path, "/") {
		u = u.JoinPath("/")
	}
	return u, nil
}

// Private reports whether requests to an address are encrypted or stay on this machine. A name
// other than localhost may point to another machine tomorrow.
func Private(u *url.URL) bool {
	return u.Scheme == "https" || u.Hostname() == "localhost" ||
		net.ParseIP(u.Hostname()).IsLoopback()
}
