// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

// Kueue is the process of Kueue, which queues jobs.
const Kueue = "kueue"

const (
	kueueFolder    = "hack/localcluster/kueue"
	kueueNamespace = "kueue-system"
	kueueAccount   = "kueue-controller-manager"
	// kueueWebhooks is the Service of its admission webhooks, and kueueCertificate the Secret with their certificate.
	kueueWebhooks, kueueCertificate = "kueue-webhook-service", "kueue-webhook-server-cert"
)

var kueueProgram = program{binary: Kueue, folder: kueueFolder, what: "Kueue", pkg: "sigs.k8s.io/kueue/cmd/kueue"}

// RunKueue builds, installs and runs an unmodified Kueue, with the rights that its own manifests give it. It serves
// Jobs and plain pods. The CRDs of the other kinds that it serves are not needed.
func (c *Cluster) RunKueue(ctx context.Context) (*Process, error) {
	if err := build(ctx, c.options, []program{kueueProgram}); err != nil {
		return nil, err
	}
	install, err := c.newKueue()
	if err != nil {
		return nil, fmt.Errorf("run Kueue: %w", err)
	}
	if err := install.apply(ctx); err != nil {
		return nil, fmt.Errorf("install Kueue: %w", err)
	}
	kubeconfig, err := c.AccountKubeconfig(ctx, kueueNamespace, kueueAccount)
	if err != nil {
		return nil, err
	}
	process, err := c.Run(Kueue, filepath.Join(binDir(c.options.Root), kueueProgram.binary), "--kubeconfig="+kubeconfig, "--config="+install.config(), "--zap-log-level=2",
		"--feature-gates=VisibilityOnDemand=false")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*healthLimit)
	defer cancel()
	if err := install.mountCertificate(ctx); err != nil {
		return nil, fmt.Errorf("run Kueue: %w", err)
	}
	ready := "http://" + loopback(install.health) + "/readyz"
	return process, process.WaitUntil(ctx, func(ctx context.Context) error { return healthy(ctx, ready) })
}

// kueue is one installation.
type kueue struct {
	*Cluster
	webhooks, health int
	client           kubernetes.Interface
}

func (c *Cluster) newKueue() (k kueue, err error) {
	k.Cluster = c
	if k.webhooks, err = c.Port(Kueue + "/webhooks"); err != nil {
		return k, err
	}
	if k.health, err = c.Port(Kueue); err != nil {
		return k, err
	}
	k.client, err = kubernetes.NewForConfig(c.Config())
	return k, err
}

func (k kueue) dir() string          { return filepath.Join(k.Dir(), Kueue) }
func (k kueue) config() string       { return filepath.Join(k.dir(), "config.yaml") }
func (k kueue) certificates() string { return filepath.Join(k.dir(), "certificates") }

// apply writes its configuration and applies its manifests.
func (k kueue) apply(ctx context.Context) error {
	if err := os.MkdirAll(k.certificates(), 0o700); err != nil {
		return err
	}
	objects, err := k.manifests(ctx)
	if err != nil {
		return err
	}
	config := fmt.Sprintf(`apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health: {healthProbeBindAddress: "%s"}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: %d, certDir: %s}
leaderElection: {leaderElect: false}
clientConnection: {qps: 300, burst: 500}
integrations: {frameworks: [batch/job, pod]}
`, loopback(k.health), k.webhooks, k.certificates())
	if err := os.WriteFile(k.config(), []byte(config), 0o600); err != nil {
		return err
	}
	manifests := filepath.Join(k.dir(), "manifests.yaml")
	if err := os.WriteFile(manifests, objects, 0o600); err != nil {
		return err
	}
	return k.Apply(ctx, manifests)
}

// manifests are those of the module, for a process that is no pod: the API server reaches its webhooks on this machine.
func (k kueue) manifests(ctx context.Context) ([]byte, error) {
	folder, err := goCommand(ctx, filepath.Join(k.options.Root, kueueFolder), "list", "-m", "-f={{.Dir}}", "sigs.k8s.io/kueue")
	if err != nil {
		return nil, fmt.Errorf("find its module: %w\n%s", err, folder)
	}
	rendered, err := exec.CommandContext(ctx, k.Kubectl(), "kustomize", filepath.Join(strings.TrimSpace(string(folder)), "config", "default")).Output()
	if err != nil {
		return nil, fmt.Errorf("render its manifests: %w", err)
	}
	var all bytes.Buffer
	for _, text := range strings.Split(string(rendered), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			return nil, fmt.Errorf("parse its manifests: %w", err)
		}
		if slices.Contains([]string{"Deployment", "APIService", "ConfigMap"}, object.GetKind()) {
			continue
		}
		k.localize(object.Object)
		if object.GetKind() == "Service" && object.GetName() == kueueWebhooks {
			object.Object["spec"] = map[string]any{"type": string(corev1.ServiceTypeExternalName), "externalName": "localhost"}
		}
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, err
		}
		all.WriteString("---\n")
		all.Write(text)
	}
	return all.Bytes(), nil
}

// localize sets the port of each reference to the Service of the webhooks.
func (k kueue) localize(value any) {
	switch value := value.(type) {
	case map[string]any:
		if value["name"] == kueueWebhooks && value["path"] != nil {
			value["port"] = int64(k.webhooks)
		}
		for _, field := range value {
			k.localize(field)
		}
	case []any:
		for _, item := range value {
			k.localize(item)
		}
	}
}

// mountCertificate puts the certificate that Kueue makes where it expects it, as a kubelet does.
func (k kueue) mountCertificate(ctx context.Context) error {
	for {
		secret, err := k.client.CoreV1().Secrets(kueueNamespace).Get(ctx, kueueCertificate, metav1.GetOptions{})
		if err == nil && len(secret.Data[corev1.TLSCertKey]) > 0 {
			for name, text := range secret.Data {
				if err := os.WriteFile(filepath.Join(k.certificates(), name), text, 0o600); err != nil {
					return err
				}
			}
			return nil
		}
		if sleepContext(ctx, pollInterval) != nil {
			return errors.Join(errors.New("it made no certificate"), err)
		}
	}
}
