// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// keys of a cluster. Each authority is trusted for one purpose: users of the API server cannot talk
// to etcd or impersonate its aggregator.
type keys struct {
	cluster, etcd, frontProxy      *authority
	server, etcdServer, etcdClient keyPair
	frontProxyClient               keyPair
	kubeletClient                  keyPair
	serviceAccounts                keyPair
}

func loadKeys(dir string) (k keys, err error) {
	for name, authority := range map[string]**authority{"cluster": &k.cluster, "etcd": &k.etcd, "front-proxy": &k.frontProxy} {
		if *authority, err = loadAuthority(dir, name); err != nil {
			return k, err
		}
	}
	var errs [6]error
	k.server, errs[0] = k.cluster.loadPair("server")
	k.etcdServer, errs[1] = k.etcd.loadPair("server")
	k.etcdClient, errs[2] = k.etcd.loadPair("client")
	k.frontProxyClient, errs[3] = k.frontProxy.loadPair(aggregator)
	k.serviceAccounts, errs[4] = loadServiceAccountKeys(dir)
	k.kubeletClient, errs[5] = k.cluster.loadPair("kube-apiserver-kubelet-client", "system:masters")
	return k, errors.Join(errs[:]...)
}

// prepare writes everything that the components read.
func (c *Cluster) prepare() error {
	for _, folder := range []string{"pki", "kubeconfigs", "logs"} {
		if err := os.MkdirAll(filepath.Join(c.Dir(), folder), 0o700); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
	}
	version := c.options.Kubernetes
	if err := c.loadCluster(); err != nil {
		return err
	}
	if c.options.Fresh && !c.anyRunning() {
		c.options.Kubernetes = version
	} else if version != c.options.Kubernetes {
		return fmt.Errorf("it is a cluster of Kubernetes %s, not %s: reset it, or choose another name", orDefault(c.options.Kubernetes), orDefault(version))
	}
	if !c.anyRunning() {
		if err := c.choose(); err != nil {
			return err
		}
	}
	c.arrange()
	return c.connect()
}

// choose decides what must not change while any component runs.
func (c *Cluster) choose() error {
	if err := choosePorts(c.options, c.state, listeners...); err != nil {
		return err
	}
	if err := c.writeKubeconfig(c.Kubeconfig(), "admin", "system:masters"); err != nil {
		return err
	}
	for component, identity := range identities {
		if err := c.writeKubeconfig(c.componentKubeconfig(component), identity[0], identity[1:]...); err != nil {
			return err
		}
	}
	if err := os.WriteFile(c.auditPolicy(), []byte(auditPolicy), 0o644); err != nil {
		return fmt.Errorf("write audit policy: %w", err)
	}
	if err := os.WriteFile(c.egressConfig(), []byte(egress), 0o644); err != nil {
		return fmt.Errorf("write egress configuration: %w", err)
	}
	return nil
}

func orDefault(version string) string { return cmp.Or(version, "of the default version") }

// loadCluster reads the state and the processes of the last run.
func (c *Cluster) loadCluster() (err error) {
	if c.keys, err = loadKeys(filepath.Join(c.Dir(), "pki")); err != nil {
		return err
	}
	c.state, err = loadState(c.Dir())
	if errors.Is(err, os.ErrNotExist) {
		c.state, err = &state{Kubernetes: c.options.Kubernetes}, nil
	}
	if err != nil {
		return err
	}
	c.options.Kubernetes = c.state.Kubernetes
	for _, record := range c.state.Processes {
		c.processes = append(c.processes, c.newProcess(record))
	}
	return nil
}

// arrange creates a process for each desired component. It does not change the command line of a
// running one.
func (c *Cluster) arrange() {
	for _, component := range AllComponents {
		if !c.options.hasComponent(component) {
			continue
		}
		p := c.Process(component)
		if p == nil {
			p = c.newProcess(record{Name: component})
			c.processes = append(c.processes, p)
		}
		if !p.Running() {
			p.record.Binary, p.record.Args = c.binary(component), c.componentArgs(component)
		}
	}
}

func (c *Cluster) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	c.config = config
	return nil
}

func (c *Cluster) newProcess(r record) *Process {
	return &Process{
		name: r.Name, dir: c.Dir(), detached: c.options.Detached,
		ready: c.readinessProbe(r.Name), changed: c.saveState,
		record: r,
	}
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (c *Cluster) auditPolicy() string { return filepath.Join(c.Dir(), "audit-policy.yaml") }
