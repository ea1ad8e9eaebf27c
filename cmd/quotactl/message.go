package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
)

// maxMessage is the maximum size in bytes of a file with a request or a response.
const maxMessage = 32 << 20

// message reads a file with an HTTP message: the first line, the header, and the rest as the body,
// whatever length the header declares.
func message(ctx context.Context, path string) (head, body []byte, err error) {
	data, err := config.ReadPipe(ctx, path, maxMessage)
	if err != nil {
		return nil, nil, err
	}
	if strings.EqualFold(filepath.Ext(path), ".json") {
		return nil, data, nil
	}
	data = bytes.TrimLeft(data, "\r\n")
	at, length := bytes.Index(data, []byte("\n\r\n")), 3
	if plain := bytes.Index(data, []byte("\n\n")); at < 0 || plain >= 0 && plain < at {
		at, length = plain, 2
	}
	if at < 0 {
		return data, nil, nil
	}
	return data[:at], data[at+length:], nil
}

// readRequest reads a file with a request. A .json file has only the body; verb and path are then
// the method's.
func readRequest(ctx context.Context, path, verb, target string) (*http.Request, []byte, error) {
	head, body, err := message(ctx, path)
	if err != nil {
		return nil, nil, fmt.Errorf("request: %w", err)
	}
	if head == nil {
		if len(body) == 0 {
			return nil, nil, fmt.Errorf("request: %s is empty", path)
		}
		if verb == "" {
			return nil, nil, cli.Hint(cli.Usagef("%s has only a body", path),
				"say what it is the body of: --method ID")
		}
		head = fmt.Appendf(nil, "%s %s\r\nContent-Type: application/json", verb, target)
	}
	first, headers, _ := strings.Cut(string(head), "\n")
	words := strings.Fields(first)
	if len(words) < 2 {
		return nil, nil, fmt.Errorf("request: %s begins with no request line, such as "+
			"POST /v1/things", path)
	}
	text := fmt.Sprintf("%s %s HTTP/1.1\r\n%s\r\n\r\n", words[0], words[1], strings.TrimSpace(headers))
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		return nil, nil, fmt.Errorf("request: %s: %w", path, err)
	}
	return r, body, nil
}

// readResponse reads a file with a response. A .json file has only the body of a success.
func readResponse(ctx context.Context, path string) (*http.Response, []byte, error) {
	head, body, err := message(ctx, path)
	if err != nil {
		return nil, nil, fmt.Errorf("response: %w", err)
	}
	if head == nil {
		head = []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json")
	}
	first, headers, _ := strings.Cut(string(head), "\n")
	words := strings.Fields(first)
	if len(words) < 2 || !strings.HasPrefix(words[0], "HTTP/") {
		return nil, nil, fmt.Errorf("response: %s begins with no status line, such as "+
			"HTTP/1.1 200 OK", path)
	}
	text := fmt.Sprintf("HTTP/1.1 %s\r\n%s\r\n\r\n", strings.Join(words[1:], " "),
		strings.TrimSpace(headers))
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text)), nil)
	if err != nil {
		return nil, nil, fmt.Errorf("response: %s: %w", path, err)
	}
	resp.Body.Close()
	if body, err = unpacked(resp.Header, body); err != nil {
		return nil, nil, fmt.Errorf("response: %s: %w: %d bytes", path, err, maxMessage)
	}
	return resp, body, nil
}

// unpacked decodes a body compressed with gzip. Some tools save a decoded body, which is returned
// as it is.
func unpacked(h http.Header, body []byte) ([]byte, error) {
	if !strings.EqualFold(h.Get("Content-Encoding"), "gzip") {
		return body, nil
	}
	from, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return body, nil
	}
	plain, err := io.ReadAll(io.LimitReader(from, maxMessage+1))
	if err == nil && len(plain) > maxMessage {
		err = errors.New("the decompressed response exceeds the maximum size")
	}
	return plain, err
}
