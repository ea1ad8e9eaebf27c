package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

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
	}
	if _, err := fmt.Fprintf(messages, "%s\n", line); err != nil {
		return err // the session has ended
	}
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
		<-l.answered
	}
	return nil
}

func (l *lines) refuse(code int, why string) error {
	_, err := fmt.Fprintf(l.out,
		`{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`+"\n", code, why)
	return err
}
