// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// readinessProbe returns a function that checks whether a component is ready, nil for other
// processes.
func (c *Cluster) readinessProbe(name string) func(context.Context) error {
	switch name {
	case Etcd:
		return func(ctx context.Context) error {
			return getURL(ctx, c.baseURL(etcdClientPort)+"/readyz", c.keys.etcd, &c.keys.etcdClient)
		}
	case APIServer:
		return func(ctx context.Context) error {
			return getURL(ctx, c.baseURL(APIServer)+"/readyz", c.keys.cluster, nil)
		}
	case ControllerManager, Scheduler:
		return func(ctx context.Context) error {
			return getURL(ctx, c.baseURL(name)+"/healthz", c.keys.cluster, nil)
		}
	case Kwok:
		return func(ctx context.Context) error {
			return getURL(ctx, "http://"+loopback(c.portOf(Kwok))+"/healthz", c.keys.cluster, nil)
		}
	}
	return nil
}

func getURL(ctx context.Context, url string, server *authority, client *keyPair) error {
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	config.RootCAs.AddCert(server.cert)
	if client != nil {
		pair, err := tls.LoadX509KeyPair(client.certFile, client.keyFile)
		if err != nil {
			return fmt.Errorf("read key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Transport{TLSClientConfig: config, DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return nil
}

// waitDefaults waits for what every user of a new cluster expects.
func (c *Cluster) waitDefaults(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	for {
		_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		if err == nil && c.options.hasComponent(ControllerManager) {
			_, err = client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		}
		if err == nil {
			return nil
		}
		if late := sleepContext(ctx, pollInterval); late != nil {
			return fmt.Errorf("wait for the default namespace: %w", errors.Join(late, err))
		}
	}
}
