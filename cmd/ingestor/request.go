package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

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

// request sends a request and writes the answer. An answer that is no success is an error.
func (a *app) request(ctx context.Context, r config.Request) error {
	asked, err := http.NewRequestWithContext(ctx, r.Method, r.URL, strings.NewReader(r.Body))
	if err != nil {
		return err
	}
	asked.Header.Set("User-Agent", "ingestor")
	if json.Valid([]byte(r.Body)) {
		asked.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(asked)
	if err != nil {
		var of *url.Error // which would repeat the URL, with what is secret in it
		if errors.As(err, &of) {
			err = of.Err
		}
		return &cli.Coded{Code: cli.ExitUnavailable, Err: fmt.Errorf("%s: %w", asked.URL.Host, err)}
	}
	defer answer.Body.Close()
	if _, err := io.Copy(a.Stdout, io.LimitReader(answer.Body, mostAnswer)); err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s answers %s", asked.URL.Host, answer.Status)
	}
	return nil
}
