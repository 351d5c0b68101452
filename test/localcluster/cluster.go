// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// startLimit limits the start of a cluster whose binaries are built.
	startLimit = 3 * time.Minute
	// lockLimit limits how long Stop and Reset wait for another process that works on the cluster.
	lockLimit = time.Minute
)

// Cluster is a local Kubernetes control plane.
type Cluster struct {
	options Options
	keys    keys
	config  *rest.Config
	// lock is held for the lifetime of an attached cluster, and during a change of a detached one.
	lock *fileLock

	mu    sync.Mutex
	state *state
	// processes in the order of their start.
	processes []*Process
}

// Start builds what is not built, starts what does not run, and returns when everything is ready.
// It joins a detached cluster that runs already. If it fails, it stops everything that it has
// started.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if o.RealNodes && o.Kubernetes != "" {
		return nil, fmt.Errorf("real machines have kubelets of the default version of Kubernetes alone, not of %s", o.Kubernetes)
	}
	if err := build(ctx, o, programs); err != nil {
		return nil, err
	}
	c := &Cluster{options: o}
	if err := c.acquire(ctx); err != nil {
		return nil, err
	}
	if err := c.startAll(ctx); err != nil {
		c.release()
		return nil, fmt.Errorf("start cluster %s: %w", o.Name, err)
	}
	if o.Detached {
		c.release()
	}
	return c, nil
}

func (c *Cluster) startAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := c.prepare(); err != nil {
		return err
	}
	if !c.options.Detached && c.anyRunning() {
		return errors.New("it runs detached; open it, or stop it first")
	}
	if err := c.removeOldState(); err != nil {
		return err
	}
	begin := time.Now()
	started, err := c.startComponents(ctx)
	if err == nil && c.options.hasComponent(APIServer) {
		err = c.waitDefaults(ctx)
	}
	if err != nil {
		return errors.Join(err, stopAll(started))
	}
	fmt.Fprintf(c.options.Out, "cluster %s ready %.1fs\n", c.options.Name, time.Since(begin).Seconds())
	return nil
}

// removeOldState removes the state of an earlier run if the options request that.
func (c *Cluster) removeOldState() error {
	if !c.options.Fresh || c.anyRunning() {
		return nil
	}
	if err := os.RemoveAll(c.Dir()); err != nil {
		return fmt.Errorf("forget the last run: %w", err)
	}
	return c.prepare()
}

// stages of a start: within one stage, the components wait for each other by themselves.
var stages = [][]string{{Etcd, APIServer}, {ControllerManager, Scheduler, Kwok}}

func (c *Cluster) startComponents(ctx context.Context) (started []*Process, err error) {
	for _, stage := range stages {
		begin := time.Now()
		var waiting []*Process
		for _, name := range stage {
			p := c.Process(name)
			if p == nil || p.Running() {
				continue
			}
			waiting, started = append(waiting, p), append(started, p)
			if err := p.Start(); err != nil {
				return started, err
			}
		}
		for _, p := range waiting {
			if err := p.WaitReady(ctx); err != nil {
				return started, err
			}
			fmt.Fprintf(c.options.Out, "%s ready %.1fs\n", p.Name(), time.Since(begin).Seconds())
		}
	}
	return started, nil
}

// Open returns a detached cluster that runs.
func Open(o Options) (*Cluster, error) {
	c, err := Load(o)
	if err != nil {
		return nil, err
	}
	if !c.Running() {
		return nil, fmt.Errorf("open cluster %s: %w", c.options.Name, errNotRunning)
	}
	return c, nil
}

// Load returns a detached cluster, whether it runs or not, for example to stop it. If there is
// none, it fails with os.ErrNotExist.
func Load(o Options) (*Cluster, error) {
	o.Detached = true
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if !fileExists(stateFile(o.clusterDir())) {
		return nil, fmt.Errorf("open cluster %s: %w", o.Name, os.ErrNotExist)
	}
	c := &Cluster{options: o}
	if err := c.loadCluster(); err != nil {
		return nil, err
	}
	return c, c.connect()
}

// Stop ends all processes, the last started first, and keeps the data for the next start.
func (c *Cluster) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), lockLimit)
	defer cancel()
	if err := c.acquire(ctx); err != nil {
		return err
	}
	defer c.release()
	return stopAll(c.Processes())
}

// Reset stops the cluster and deletes its state.
func (c *Cluster) Reset() error {
	ctx, cancel := context.WithTimeout(context.Background(), lockLimit)
	defer cancel()
	if err := c.acquire(ctx); err != nil {
		return err
	}
	defer c.release()
	if err := stopAll(c.Processes()); err != nil {
		return err
	}
	if err := os.RemoveAll(c.Dir()); err != nil {
		return fmt.Errorf("forget cluster %s: %w", c.options.Name, err)
	}
	return nil
}

func stopAll(processes []*Process) error {
	var errs []error
	for _, p := range slices.Backward(processes) {
		errs = append(errs, p.Stop())
	}
	return errors.Join(errs...)
}

// Running reports whether the API server of the cluster runs.
func (c *Cluster) Running() bool {
	p := c.Process(APIServer)
	return p != nil && p.Running()
}

// Dir is the folder with everything that the cluster keeps.
func (c *Cluster) Dir() string { return c.options.clusterDir() }

// Kubectl is the path of a kubectl of the cluster's version.
func (c *Cluster) Kubectl() string { return filepath.Join(c.options.controlPlaneDir(), "kubectl") }

// Process returns a component, or the process that Run started under that name; nil if there is
// none.
func (c *Cluster) Process(name string) *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.processes, func(p *Process) bool { return p.Name() == name })
	if i < 0 {
		return nil
	}
	return c.processes[i]
}

// Processes returns all processes in the order of their start.
func (c *Cluster) Processes() []*Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.processes)
}

// anyRunning reports whether any process of the cluster runs.
func (c *Cluster) anyRunning() bool {
	return slices.ContainsFunc(c.Processes(), (*Process).Running)
}

// saveState records which processes run, for clients that open the cluster later.
func (c *Cluster) saveState() error {
	if !c.options.Detached {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Processes = nil
	for _, p := range c.processes {
		p.mu.Lock()
		c.state.Processes = append(c.state.Processes, p.record)
		p.mu.Unlock()
	}
	return c.state.save(c.Dir())
}

func (c *Cluster) acquire(ctx context.Context) (err error) {
	if c.lock != nil {
		return nil
	}
	path := c.Dir() + ".lock"
	if c.options.Detached {
		c.lock, err = waitLock(ctx, path, func() {
			fmt.Fprintf(c.options.Out, "waiting for the process that works on cluster %s\n", c.options.Name)
		})
		return err
	}
	c.lock, err = tryLock(path)
	return err
}

func (c *Cluster) release() {
	if c.lock != nil {
		c.lock.release()
		c.lock = nil
	}
}
