package meter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// fileTime is how long the lines of an uploaded file are kept. Batches refer to no older files.
const fileTime = 30 * 24 * time.Hour

// readFile adds up the lines of an uploaded file while its request is sent.
func (e *exchange) readFile() {
	if e.r.Body == nil || !e.gate.Table.File(e.call.Method) {
		return
	}
	in, out := io.Pipe()
	e.lines = make(chan costs.Lines, 1)
	header := e.r.Header
	go func() {
		e.lines <- e.gate.Table.ReadFile(e.call.Method, header, in)
		in.Close()
	}()
	e.r = e.r.Clone(e.r.Context())
	e.r.Body = &tee{e.r.Body, out}
}

// tee is a request body that is copied to a second reader.
type tee struct {
	io.ReadCloser
	copy *io.PipeWriter
}

// Read reads for both readers. The second reader cannot fail.
func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	_, _ = t.copy.Write(p[:n])
	if err != nil {
		t.copy.CloseWithError(err)
	}
	return n, err
}

// Close closes the body and ends the second reader.
func (t *tee) Close() error {
	t.copy.CloseWithError(io.ErrUnexpectedEOF) // no effect if the copy is complete
	return t.ReadCloser.Close()
}

// noteFile writes a note of the lines of an uploaded file, under its name in the response.
func (e *exchange) noteFile(answer []byte) {
	t := e.gate
	name := t.Table.FileName(e.call.Method, answer)
	if e.lines == nil || name == "" || t.Budget.Journal == nil {
		return
	}
	var lines costs.Lines
	select {
	case lines = <-e.lines:
	case <-e.ctx.Done():
		return
	}
	err := t.writeNote(e.ctx, quota.Note{Name: name, Until: time.Now().Add(fileTime)}, lines)
	if err != nil {
		e.log().Error("cannot note an uploaded file: calls that refer to it will be refused",
			"file", name, "error", err)
	}
}

// file returns the lines of a file that was uploaded before. Errors: quota.ErrJournal.
func (t *Transport) file(ctx context.Context, name string) (lines costs.Lines, err error) {
	switch err = t.readNote(ctx, name, &lines); {
	case errors.Is(err, quota.ErrNoNote):
		err = fmt.Errorf("file %.100q was not uploaded as one request through a proxy on this "+
			"host in the last 30 days: upload it again", name)
	case err != nil:
		err = fmt.Errorf("%w: %w", quota.ErrJournal, err)
	}
	return lines, err
}
