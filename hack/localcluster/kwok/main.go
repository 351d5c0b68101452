// SPDX-License-Identifier: Apache-2.0

// Evenkeel-kwok plays the kubelet of every Node annotated kwok.x-k8s.io/node=fake, with kwok as a
// library.
//
// Unlike the kwok binary, it lets a Node go at once when the annotation goes away, takes it over at
// once when it comes back, and keeps its leases over a restart. Fault tests need this.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"sigs.k8s.io/kwok/pkg/kwok/controllers"
)

type options struct {
	kubeconfig   string
	address      string
	cidr         string
	leaseSeconds uint
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, parse()); err != nil {
		fmt.Fprintln(os.Stderr, "evenkeel-kwok:", err)
		os.Exit(1)
	}
}

func parse() options {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file of the cluster")
	flag.StringVar(&o.address, "address", "127.0.0.1:0", "host and port of /healthz")
	flag.StringVar(&o.cidr, "cidr", "10.128.0.1/9", "where pod addresses come from")
	flag.UintVar(&o.leaseSeconds, "node-lease-duration-seconds", 40, "duration of a node's lease, renewed four times as often")
	flag.Parse()
	return o
}

// run returns when ctx ends, or with the reason why it could not go on.
func run(ctx context.Context, o options) error {
	config, err := newConfig(o)
	if err != nil {
		return err
	}
	controller, err := controllers.NewController(config)
	if err != nil {
		return fmt.Errorf("make controller: %w", err)
	}
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("start controller: %w", err)
	}
	return serveHealth(ctx, o.address)
}

func serveHealth(ctx context.Context, address string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve health: %w", err)
	}
	return nil
}
