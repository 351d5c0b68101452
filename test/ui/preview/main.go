// SPDX-License-Identifier: Apache-2.0

// Command preview serves the plugin's page for overviews that it reads as JSON, one after the
// other.
//
//	kubectl evenkeel status -o json | go run ./test/ui/preview
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plugin/page"
	"github.com/evenkeel/evenkeel/internal/plugin/size"
	"github.com/evenkeel/evenkeel/internal/sizing"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
	"github.com/evenkeel/evenkeel/test/synthetic"
)

func main() {
	port := flag.Int("port", 0, "port on 127.0.0.1; 0 means any free port")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *port)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "preview:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, port int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	listener, err := page.Listen(ctx, port)
	if err != nil {
		return err
	}
	overviews, changed := make(chan overview.Overview, 1), make(chan struct{})
	go func() {
		if err := sendOverviews(ctx, json.NewDecoder(os.Stdin), overviews, changed); err != nil {
			cancel(err)
		}
	}()
	// Each overview is one step of the past: none is left out, however fast they come.
	server := page.New("preview", page.Source{Read: reader(ctx, overviews), Changed: changed, Size: sizeOf}, clock.RealClock{}, time.Millisecond)
	fmt.Println(server.Address(listener))
	err = server.Serve(ctx, listener)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(err, cause)
	}
	return err
}

// sendOverviews sends one overview after the other. After the last one, the page stays as it is.
func sendOverviews(ctx context.Context, decoder *json.Decoder, overviews chan<- overview.Overview, changed chan<- struct{}) error {
	for {
		var next overview.Overview
		if err := decoder.Decode(&next); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read overview: %w", err)
		}
		select {
		case overviews <- next:
		case <-ctx.Done():
			return nil
		}
		select {
		case changed <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
	}
}

// sizeOf sizes a reserve for two weeks with office hours.
func sizeOf(ctx context.Context, namespace, name string) (size.Answer, error) {
	return size.Find(size.Question{
		Trace: synthetic.Weeks[0].Trace(2, 1), Name: name, Pool: size.Pool{Namespace: namespace, Name: name}, Current: ptr.To(2), Price: 0.2,
		Goal:  sizing.Goal{Percentile: 99, Wait: 5 * time.Second, Zone: time.UTC},
		Notes: []string{"these are synthetic weeks"},
		Setup: sizing.Setup{
			Machine: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")},
			Boot:    []time.Duration{2 * time.Minute, 150 * time.Second}, Release: 300 * time.Millisecond,
			Autoscaler:   &sizing.Autoscaler{Up: 10 * time.Second, Down: 10 * time.Minute},
			BootPatience: machinetaint.DefaultBootPatience,
			From:         synthetic.Monday, To: synthetic.Monday.AddDate(0, 0, 14), Interrupted: func() bool { return ctx.Err() != nil },
		},
	})
}

// reader waits for the first overview. Later it takes the next one if there is one.
func reader(ctx context.Context, overviews <-chan overview.Overview) func() overview.Overview {
	var last overview.Overview
	return func() overview.Overview {
		if last.At.IsZero() {
			select {
			case last = <-overviews:
			case <-ctx.Done():
			}
			return last
		}
		select {
		case last = <-overviews:
		default:
		}
		return last
	}
}
