package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Addressable reports whether text is an address to listen on, such as 127.0.0.1:8080 or :0.
func Addressable(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err != nil || port == "" {
		return false
	}
	_, err = net.LookupPort("tcp", port)
	return err == nil
}

// CheckListen validates a required --listen.
func CheckListen(address, usage string) error {
	switch {
	case address == "":
		return Hint(Usagef("--listen is missing"), "%s", usage)
	case !Addressable(address):
		return Usagef("--listen %q: write host:port, such as 127.0.0.1:8080", address)
	}
	return nil
}

// ServeStandin serves a stand-in until the context ends, and prints its counts.
func (c *Common) ServeStandin(ctx context.Context, address string, standin http.Handler,
	counts func() any) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return Hint(err, "another program is listening there; port 0 picks a free one")
	}
	fmt.Fprintf(c.Stdout, "http://%s/\n", listener.Addr())
	c.Logger().Info("stand-in listens", "address", listener.Addr().String())
	web := &http.Server{Handler: standin, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	err = web.Close()
	return errors.Join(err, json.NewEncoder(c.Stdout).Encode(counts()))
}
