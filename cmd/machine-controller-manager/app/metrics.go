// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/daemon"
)

// MetricsOptions are the flags of metrics with access control.
type MetricsOptions struct {
	// Address is host:port; empty means that metrics are served beside the health of the process,
	// as in the stock binary.
	Address           string
	CertFile, KeyFile string
}

func (o *MetricsOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Address, "secure-metrics-address", "",
		"host:port that serves /metrics by TLS, to clients with a token that is allowed to get /metrics in the control cluster. The port of /healthz then does not serve it. Default: the port of /healthz serves it to every client.")
	flags.StringVar(&o.CertFile, "secure-metrics-cert-file", "", "Certificate for --secure-metrics-address, in PEM format. Read again for each connection. Default: a self-signed certificate.")
	flags.StringVar(&o.KeyFile, "secure-metrics-key-file", "", "Key of --secure-metrics-cert-file, in PEM format.")
}

func (o *MetricsOptions) validate() error {
	if (o.CertFile == "") != (o.KeyFile == "") {
		return errors.New("--secure-metrics-cert-file, --secure-metrics-key-file: these belong together")
	}
	if o.Address == "" {
		if o.CertFile != "" {
			return errors.New("--secure-metrics-cert-file: needs --secure-metrics-address")
		}
		return nil
	}
	if _, _, err := net.SplitHostPort(o.Address); err != nil {
		return fmt.Errorf("--secure-metrics-address: %w", err)
	}
	return nil
}

// serveMetrics serves metrics to authorized clients, if an address is set.
func (p *process) serveMetrics(ctx context.Context) error {
	o := p.options.Metrics
	if o.Address == "" {
		<-ctx.Done()
		return nil
	}
	reviews, err := p.pastGate(name+"-metrics", func(config *rest.Config) {
		config.Timeout, config.QPS, config.Burst = requestTimeout, daemon.ReviewQPS, daemon.ReviewBurst
	})
	if err != nil {
		return err
	}
	return daemon.ServeMetrics(ctx, o.Address, daemon.SecureMetrics{
		Gatherer: p.metrics(), Reviews: reviews, CertFile: o.CertFile, KeyFile: o.KeyFile,
	})
}
