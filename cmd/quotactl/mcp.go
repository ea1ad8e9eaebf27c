package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/serve"
)

func (a *app) mcp() *cobra.Command {
	var allowSpend bool
	c := a.Command("mcp", func(c *cobra.Command, _ []string) error {
		ctx := c.Context()
		cfg, err := a.loadChosen(ctx)
		if err != nil {
			return err
		}
		l, err := cli.OpenLedger(ctx, cfg.Ledger)
		if err != nil {
			return err
		}
		desk := &agentDesk{app: a, Source: report.Source{Config: cfg, Ledger: l}}
		server, err := desk.server(allowSpend)
		if err == nil {
			err = server.Run(ctx, newLines(c.InOrStdin(), a.Stdout))
			if ctx.Err() != nil {
				err = nil
			}
		}
		return errors.Join(err, l.Close())
	})
	cli.Flags(c.Flags(), "allow-spend", &allowSpend)
	return c
}

// agentDesk answers the tools of an agent.
type agentDesk struct {
	*app
	report.Source
	api http.Handler // the ledger's HTTP API
}

func (d *agentDesk) server(allowSpend bool) (*mcp.Server, error) {
	version, _ := report.Version()
	instructions := "Budgets of API quotas. Times are UTC, units are whole numbers by bucket."
	if !allowSpend {
		instructions += " This server only reads: quotactl mcp --allow-spend offers hold and settle."
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "quotactl", Version: version},
		&mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{}}}) // the list of tools never changes
	addTool(s, "status", "How much of each limit is used, held and left, and when units come free",
		true, func(ctx context.Context, _ struct{}) (any, error) { return d.Status(ctx) })
	addTool(s, "forecast", "Whether each bucket lasts to its reset, or when it runs dry", true,
		func(ctx context.Context, in forecastInput) (any, error) {
			forecasts, err := d.Forecasts(ctx, in.Bucket)
			return report.NewForecastList(forecasts), err
		})
	addTool(s, "explain", "Whether a call fits now, when it will, and who has taken the units",
		true, d.explainTo)
	if !allowSpend {
		return s, nil
	}
	charging := &serve.Server{Source: func() report.Source { return d.Source }, Log: d.Logger()}
	var err error
	d.api, err = charging.Handler()
	addTool(s, "hold", "Set aside the most that a call can take, before it is sent. Do not send the "+
		"call if this is denied. A hold that is not settled in time becomes a charge", false, d.hold)
	addTool(s, "settle", "Book what a call used of a hold: 0 units if it was never sent", false,
		func(ctx context.Context, in agentSettlement) (any, error) {
			// a path with "" or ".." would be that of another resource
			if _, err := quota.HeldBuckets(in.Hold); err != nil {
				return nil, err
			}
			return d.post(ctx, "/v1/holds/"+url.PathEscape(in.Hold)+"/settlements", "",
				map[string]any{"costs": in.Costs})
		})
	return s, err
}

// addTool adds a tool whose result is JSON.
func addTool[In any](s *mcp.Server, name, description string, reads bool,
	answer func(context.Context, In) (any, error)) {
	harmless := false
	tool := &mcp.Tool{Name: name, Description: description, Annotations: &mcp.ToolAnnotations{
		ReadOnlyHint: reads, DestructiveHint: &harmless}}
	mcp.AddTool(s, tool, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (
		*mcp.CallToolResult, any, error) {
		out, err := answer(ctx, in)
		if refused := (*refusedCall)(nil); errors.As(err, &refused) {
			return &mcp.CallToolResult{IsError: true}, refused.problem, nil
		}
		return nil, out, err
	})
}

type forecastInput struct {
	Bucket string `json:"bucket,omitempty" jsonschema:"only this bucket; all if left out"`
}

type explainInput struct {
	Credential string `json:"credential,omitempty" jsonschema:"needed if there are several"`
	Bucket     string `json:"bucket,omitempty" jsonschema:"default if left out"`
	Units      int64  `json:"units,omitempty" jsonschema:"units to take; 1 if left out"`
}

func (d *agentDesk) explainTo(ctx context.Context, in explainInput) (any, error) {
	cred, err := d.Config.Credential(in.Credential)
	if err != nil {
		return nil, err
	}
	call := quota.Call{Bucket: cmp.Or(in.Bucket, quota.DefaultBucket), Units: cmp.Or(in.Units, 1)}
	decision, who, err := d.gate(d.Config, d.Ledger, cred).outcome(ctx, call)
	if err != nil && !decision.Never {
		return nil, err
	}
	return explanation{report.NewDecision(decision, true), who.by}, nil
}

type agentHold struct {
	Credential string            `json:"credential,omitempty" jsonschema:"needed if there are several"`
	Method     string            `json:"method,omitempty" jsonschema:"sets the costs"`
	Count      int64             `json:"count,omitempty" jsonschema:"calls of method; 1 if left out"`
	Bucket     string            `json:"bucket,omitempty" jsonschema:"default if left out"`
	Units      int64             `json:"units,omitempty" jsonschema:"units of bucket"`
	Costs      map[string]int64  `json:"costs,omitempty" jsonschema:"units by bucket"`
	TTL        string            `json:"ttl" jsonschema:"how long the hold lasts: 90s, 10m, 2h"`
	Labels     map[string]string `json:"labels,omitempty" jsonschema:"kept in the log"`
	Note       string            `json:"note,omitempty"`
	ID         string            `json:"id,omitempty" jsonschema:"the same id again: the same hold"`
}

func (d *agentDesk) hold(ctx context.Context, in agentHold) (any, error) {
	id := in.ID
	in.ID = ""
	return d.post(ctx, "/v1/holds", id, struct {
		agentHold
		Lapse quota.Lapse `json:"lapse"`
	}{in, quota.LapseCharge})
}

type agentSettlement struct {
	Hold  string           `json:"hold" jsonschema:"as hold returned it"`
	Costs map[string]int64 `json:"costs" jsonschema:"units used by bucket; of others, what was held"`
}

// post sends a request to the ledger's API. A refusal is a *refusedCall.
func (d *agentDesk) post(ctx context.Context, path, key string, body any) (any, error) {
	status, text, err := serve.Call(ctx, d.api, path, key, body)
	if err == nil && status/100 != 2 {
		err = &refusedCall{text}
	}
	return json.RawMessage(text), err
}

// refusedCall is a problem that the API returned.
type refusedCall struct{ problem json.RawMessage }

func (r *refusedCall) Error() string { return string(r.problem) }

// maxLine is the length in bytes at which an agent's line is refused.
const maxLine = 1 << 20

// lines passes messages between an agent and the library, one call at a time. On its own, the
// library would end the session at a line that is not a message, and drop unanswered calls when its
// input ends.
type lines struct {
	in       io.Reader
	out      io.Writer
	answered chan struct{}
}

func newLines(in io.Reader, out io.Writer) *mcp.IOTransport {
	l := &lines{in, out, make(chan struct{}, 1)}
	messages, forward := io.Pipe()
	go func() { forward.CloseWithError(l.filter(forward)) }() // ends with the input
	return &mcp.IOTransport{Reader: messages, Writer: l}
}

// Write writes the answer to a call.
func (l *lines) Write(p []byte) (int, error) {
	n, err := l.out.Write(p)
	l.answered <- struct{}{}
	return n, err
}

// Close implements io.Closer.
func (*lines) Close() error { return nil }

// filter copies messages, and refuses other lines.
func (l *lines) filter(messages io.Writer) error {
	r := bufio.NewReaderSize(l.in, maxLine)
	for {
		line, err := r.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n')
		}
		if failed := l.pass(messages, bytes.TrimSpace(line), long); failed != nil {
			return failed
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// pass forwards one line and, if it is a call, waits for the response.
func (l *lines) pass(messages io.Writer, line []byte, long bool) error {
	message, wrong := jsonrpc.DecodeMessage(line)
	switch {
	case long:
		return l.refuse(jsonrpc.CodeInvalidRequest, "a message must be shorter than 1 MiB")
	case len(line) == 0:
		return nil
	case !json.Valid(line):
		return l.refuse(jsonrpc.CodeParseError, "the line is not JSON")
	case wrong != nil:
		return l.refuse(jsonrpc.CodeInvalidRequest, "the line is not a message of JSON-RPC 2.0")
	case !exactID(line):
		return l.refuse(jsonrpc.CodeInvalidRequest,
			"the id must be a string, or an integer between -2^53 and 2^53, exclusive")
	}
	if _, err := fmt.Fprintf(messages, "%s\n", line); err != nil {
		return err // the session has ended
	}
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
		<-l.answered
	}
	return nil
}

// exactID reports whether the id of a message survives the library, which decodes numbers as
// float64. A client could not match a response with another id.
func exactID(line []byte) bool {
	var message struct{ ID json.RawMessage }
	var number float64
	if json.Unmarshal(line, &message) != nil || json.Unmarshal(message.ID, &number) != nil {
		return true
	}
	return number == math.Trunc(number) && math.Abs(number) < 1<<53
}

func (l *lines) refuse(code int, why string) error {
	_, err := fmt.Fprintf(l.out,
		`{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`+"\n", code, why)
	return err
}
