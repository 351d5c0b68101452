// SPDX-License-Identifier: Apache-2.0

package process

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"sync"

	controllercmd "github.com/gardener/gardener/extensions/pkg/controller/cmd"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// ManagerSettings returns what a manager is made with. Its webhook server reads the certificate for
// each connection: the library writes its files in place, also while the server starts, which ends if
// it finds one of them empty.
func ManagerSettings(config *controllercmd.ManagerConfig) manager.Options {
	settings := config.Options()
	served := &certificate{folder: config.WebhookCertDir}
	settings.WebhookServer = webhook.NewServer(webhook.Options{
		Host: config.WebhookServerHost, Port: config.WebhookServerPort, CertDir: config.WebhookCertDir,
		TLSOpts: []func(*tls.Config){func(t *tls.Config) { t.GetCertificate = served.get }},
	})
	return settings
}

// certificate is the pair of files in a folder, as it was when both were last complete.
type certificate struct {
	folder string

	mu   sync.Mutex
	last *tls.Certificate
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(c.folder, "tls.crt"), filepath.Join(c.folder, "tls.key"))
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.last = &pair
	case c.last == nil:
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	return c.last, nil
}
