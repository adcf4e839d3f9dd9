package queue

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Server is a JetStream server in this process.
type Server struct{ nats *server.Server }

// maxStore is far above what the queues of all jobs take: a few hundred bytes a shard.
const maxStore = 1 << 30

// startTime is how long a server may take to read its files.
const startTime = 30 * time.Second

// Serve starts a server that keeps its queues below dir. Without a token whoever reaches the address may take part. The
// caller closes it.
func Serve(address, dir, token string) (*Server, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("port %.20q: want a number", text)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "tfbatch", Host: host, Port: port, Authorization: token, NoSigs: true,
		JetStream: true, StoreDir: dir, JetStreamMaxStore: maxStore, SyncAlways: true, // few messages, none to be lost
		DisableJetStreamBanner: true,
	})
	if err != nil {
		return nil, err
	}
	said := &complaint{}
	s.SetLogger(said, false, false)
	s.Start()
	if !s.ReadyForConnections(startTime) || !s.JetStreamEnabled() {
		s.Shutdown()
		return nil, fmt.Errorf("the server does not start: %w", said.error())
	}
	return &Server{s}, nil
}

// URL is the address for workers on this machine.
func (s *Server) URL() string { return "nats://" + s.nats.Addr().String() }

// Close ends the server once its files are written.
func (s *Server) Close() {
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}

// complaint keeps why a server did not start: its log is all it says of that.
type complaint struct {
	mu   sync.Mutex
	text string
}

func (c *complaint) keep(format string, v []any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.text == "" {
		c.text = fmt.Sprintf(format, v...)
	}
}

func (c *complaint) error() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.text == "" {
		return errors.New("it gave no reason")
	}
	return errors.New(c.text)
}

func (c *complaint) Errorf(format string, v ...any) { c.keep(format, v) }
func (c *complaint) Fatalf(format string, v ...any) { c.keep(format, v) }
func (c *complaint) Noticef(string, ...any)         {}
func (c *complaint) Warnf(string, ...any)           {}
func (c *complaint) Debugf(string, ...any)          {}
func (c *complaint) Tracef(string, ...any)          {}
