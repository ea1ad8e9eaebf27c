package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/untrusted"
)

// A job with a url runs as this program, so that all jobs run in the same way. The request is in a
// variable, because other users can read arguments.
const (
	requestName     = "request"
	requestVariable = "INGESTOR_REQUEST"
	maxAnswer       = 64 << 10 // bytes of a response that are printed
)

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
// r.Success or, if that is empty, is 2xx. A redirect is not followed.
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
	response, body, err := untrusted.Fetch(http.Client{}, request, maxAnswer)
	if response == nil {
		return &cli.Coded{Code: cli.ExitUnavailable, Err: fmt.Errorf("%s: %w", host, err)}
	}
	if _, failed := a.Stdout.Write(body); err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	if slices.Contains(r.Success, response.StatusCode) ||
		len(r.Success) == 0 && response.StatusCode/100 == 2 {
		return nil
	}
	err = fmt.Errorf("%s responds with %s", host, response.Status)
	if response.StatusCode/100 == 3 {
		err = cli.Hint(err, "write the redirect's target, or list the status in success:")
	}
	return err
}
