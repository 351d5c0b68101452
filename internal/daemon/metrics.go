// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
)

// SecureMetrics are served by TLS to callers whose token the API server knows and that RBAC allows
// to get /metrics (nonResourceURLs).
type SecureMetrics struct {
	Gatherer prometheus.Gatherer
	// Reviews sends requests to the API server. It should serve nothing else, because anyone who
	// reaches the port can cause requests.
	Reviews kubernetes.Interface
	// CertFile and KeyFile are read again for each connection. Without them, the process creates a
	// self-signed certificate.
	CertFile, KeyFile string
}

// ServeMetrics serves metrics on addr until ctx ends.
func ServeMetrics(ctx context.Context, addr string, m SecureMetrics) error {
	certificate, err := m.certificate()
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	listener, err := listen(ctx, addr)
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		// HTTP/1 is enough for a reader that comes twice a minute, and avoids the attacks on
		// HTTP/2.
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate() },
	}
	return serveUntil(ctx, tls.NewListener(listener, config), m.handler(clock.RealClock{}))
}

func (m SecureMetrics) handler(clock clock.PassiveClock) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(metricsPath, newAdmission(m.Reviews, clock).before(metricsHandler(m.Gatherer)))
	return mux
}

// certificate returns the certificate for each caller. It returns an error now if it would fail
// later.
func (m SecureMetrics) certificate() (func() (*tls.Certificate, error), error) {
	if m.CertFile != "" {
		read := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(m.CertFile, m.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("read certificate: %w", err)
			}
			return &pair, nil
		}
		_, err := read()
		return read, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name myself: %w", err)
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(host, nil, []string{"localhost"})
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	return func() (*tls.Certificate, error) { return &pair, nil }, err
}

// MetricsOptions are the flags of metrics with access control.
type MetricsOptions struct {
	// Address is host:port; empty means that metrics are served beside the health of the process,
	// as in the stock binary.
	Address           string
	CertFile, KeyFile string
}

func (o *MetricsOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Address, "secure-metrics-address", "",
		"host:port that serves /metrics by TLS, to clients with a token that is allowed to get /metrics in the control cluster. The port of /healthz then does not serve it. Default: the port of /healthz serves it to every client.")
	flags.StringVar(&o.CertFile, "secure-metrics-cert-file", "", "Certificate for --secure-metrics-address, in PEM format. Read again for each connection. Default: a self-signed certificate.")
	flags.StringVar(&o.KeyFile, "secure-metrics-key-file", "", "Key of --secure-metrics-cert-file, in PEM format.")
}

func (o *MetricsOptions) Validate() error {
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

// ServeMetrics serves metrics to authorized clients, if an address is set.
func (p *Process) ServeMetrics(ctx context.Context, o MetricsOptions, metrics prometheus.Gatherer) error {
	if o.Address == "" {
		<-ctx.Done()
		return nil
	}
	reviews, err := p.Past(p.Name+"-metrics", func(config *rest.Config) {
		config.Timeout, config.QPS, config.Burst = requestTimeout, ReviewQPS, ReviewBurst
	})
	if err != nil {
		return err
	}
	return ServeMetrics(ctx, o.Address, SecureMetrics{Gatherer: metrics, Reviews: reviews, CertFile: o.CertFile, KeyFile: o.KeyFile})
}
