package untrusted

import (
	"errors"
	"io"
	"net/http"
	"net/url"
)

// Fetch sends a request and returns the response, with the first max bytes of its body. It follows
// no redirect, which could lead to another host, and an error does not contain the URL, which may
// hold a secret. With an error it returns the part of the body that was read. The client's timeout
// includes the body.
func Fetch(client http.Client, r *http.Request, max int64) (*http.Response, []byte, error) {
	client.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	response, err := client.Do(r)
	if about, ok := errors.AsType[*url.Error](err); ok {
		err = about.Err
	}
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, max))
	return response, body, err
}
