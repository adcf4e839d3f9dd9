package queue

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options are how a worker keeps to its server.
type Options struct {
	Token    string        // "": the server wants none
	Patience time.Duration // how long a server may be away
	Notice   func(text string)
}

// Conn is a connection to a server. It comes back by itself when that was away.
type Conn struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	address string // without what is secret in it
	options Options
}

// How long one question to the server may take, and the pause before it is asked again.
const (
	answerTime = 5 * time.Second
	retryPause = 300 * time.Millisecond
)

// Dial begins a connection. The server need not be there yet. The caller closes it.
func Dial(address string, o Options) (*Conn, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls" {
		return nil, fmt.Errorf("queue: want an address as nats://host:4222 or tls://host:4222")
	}
	c := &Conn{address: u.Scheme + "://" + u.Host, options: o}
	options := []nats.Option{
		nats.Name("tfbatch work"), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(retryPause),
		nats.ReconnectBufSize(-1), // a message is sent now or not at all
		nats.ReconnectHandler(func(*nats.Conn) { o.Notice("queue " + c.address + ": here again") }),
	}
	if o.Token != "" {
		options = append(options, nats.Token(o.Token))
	}
	if c.nc, err = nats.Connect(address, options...); err != nil {
		return nil, fmt.Errorf("queue %s: %w", c.address, err)
	}
	if c.js, err = jetstream.New(c.nc); err != nil {
		c.nc.Close()
		return nil, fmt.Errorf("queue %s: %w", c.address, err)
	}
	return c, nil
}

// Close ends the connection. Leases end by themselves.
func (c *Conn) Close() { c.nc.Close() }

// ErrAway says that a server has not answered for as long as patience allows.
var ErrAway = errors.New("no answer")

var errApart = errors.New("not connected")

// fatal is an error that asking again does not mend.
type fatal struct{ error }

func (f *fatal) Unwrap() error { return f.error }

func final(err error) error { return &fatal{err} }

// try asks until there is an answer: a server that starts again is away for a while.
func (c *Conn) try(ctx context.Context, ask func(ctx context.Context) error) error {
	started, said := time.Now(), false
	for {
		one, cancel := context.WithTimeout(ctx, answerTime)
		err := ask(one)
		cancel()
		if err == nil || ctx.Err() != nil || !c.away(err) {
			return c.explain(ctx, err)
		}
		if !c.nc.IsConnected() {
			err = errApart // whatever the library calls it
		}
		if waited := time.Since(started); waited >= c.options.Patience {
			return fmt.Errorf("queue %s: %w for %v (%w); what is done is kept, start the worker again to go on", c.address, ErrAway, c.options.Patience, err)
		}
		if !said {
			c.options.Notice(fmt.Sprintf("queue %s: %v; waiting for it up to %v", c.address, err, c.options.Patience))
			said = true
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// explain names the server in an error.
func (c *Conn) explain(ctx context.Context, err error) error {
	var f *fatal
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &f):
		err = f.error
	case c.nc.IsClosed() && c.nc.LastError() != nil:
		err = c.nc.LastError()
	}
	return fmt.Errorf("queue %s: %w", c.address, err)
}

// away reports whether an error is that of a server that may come back. One that answers with an error of its own, or has
// sent us away, will not.
func (c *Conn) away(err error) bool {
	var f *fatal
	var api *jetstream.APIError
	switch {
	case c.nc.IsClosed(), errors.As(err, &f):
		return false
	case errors.As(err, &api):
		return api.Code == 503 // it is still reading its files
	}
	return true
}
