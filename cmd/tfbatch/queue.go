package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"tfbatch/internal/journal"
	"tfbatch/internal/queue"
)

func (a *app) queueCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "queue --store DIR",
		Short: "serve the queue that workers take shards from",
		Long: `queue is a NATS JetStream server in this program, for one machine or a few that trust each other; work also takes any
other JetStream server. What it knows is below DIR, synced as it is written: it can be killed and started again while
workers run. It ends by a signal and holds no rows: lose it, and the workers fill it again.

It listens on 127.0.0.1 unless another address is written out. Who reaches the address can take and spoil work, though not
make a worker read or write a file: give it a token where others can.

Exit codes: 0 ended by a signal, 2 flags, 8 the address or the folder is taken.`,
		Example: `  tfbatch queue --store /var/lib/tfbatch
  TFBATCH_TOKEN=... tfbatch queue --store /var/lib/tfbatch --listen 10.0.0.1:4222`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.serveQueue(c.Context()) },
	}
	f := c.Flags()
	f.String("store", "", "folder for what the queue knows")
	f.String("listen", "4222", "port of 127.0.0.1, 0 for any, or an address that is written out")
	f.String("token", "", "what workers have to say; better as TFBATCH_TOKEN")
	return c
}

func (a *app) serveQueue(ctx context.Context) error {
	set := &a.set.work
	if set.store == "" {
		return usage(errors.New("--store is missing: the folder for what the queue knows"))
	}
	address, err := listenAddress(set.listen)
	if err != nil {
		return usage(fmt.Errorf("--listen: %w", err))
	}
	if err := os.MkdirAll(set.store, 0o755); err != nil {
		return refused(err)
	}
	unlock, err := journal.Lock(filepath.Join(set.store, "lock"))
	if err != nil {
		return refused(err)
	}
	defer unlock()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	server, err := queue.Serve(address, set.store, set.token)
	if err != nil {
		return refused(fmt.Errorf("queue: %w", err))
	}
	defer server.Close()
	if host, _, _ := net.SplitHostPort(address); set.token == "" && !net.ParseIP(host).IsLoopback() {
		a.notice("whoever reaches " + address + " can take part: there is no token")
	}
	if _, err := fmt.Fprintf(a.stdout, "%s\n", server.URL()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
