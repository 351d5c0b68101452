// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/pkg/provider/virtual"
	"github.com/evenkeel/evenkeel/test/machines/registry"
)

// retryPeriod is how long to wait after something has failed.
const retryPeriod = time.Second

// Options are what a Fleet needs.
type Options struct {
	// Dir is the folder of all machines, Programs that of what they run, and Cgroup the path of the cgroup of
	// all of them.
	Dir, Programs, Cgroup string
	// Namespace of the machines' records.
	Namespace string
	Client    kubernetes.Interface
	Machines  machineclient.MachinesGetter
	// APIServer is the port of the API server on loopback.
	APIServer int
	// CA is the certificate in PEM of those who may be clients of kubelets.
	CA string
	// Kubeconfig returns one for a user.
	Kubeconfig func(user string, groups ...string) ([]byte, error)
	// Image is what the registry's images run.
	Image []byte
}

// Fleet runs the real machines of a cluster.
type Fleet struct {
	Options
	registry *registry.Server
	wake     chan struct{}
	// faults are the last ones, and problem what could not be read when they were. Only Run uses them.
	faults  virtual.Faults
	problem string

	mu        sync.Mutex
	running   map[string]*machine
	addresses map[string]string // of Nodes
}

// New returns a fleet that runs no machine yet.
func New(o Options) *Fleet {
	return &Fleet{Options: o, registry: registry.New(o.Image), wake: make(chan struct{}, 1), running: map[string]*machine{}, addresses: map[string]string{}}
}

// Run boots and ends machines until ctx ends, and then ends all of them. Their disks stay: the next Run boots them
// again.
func (f *Fleet) Run(ctx context.Context) error {
	if err := removeCgroup(f.Cgroup); err != nil {
		return fmt.Errorf("remove the cgroups of an earlier run: %w", err)
	}
	switch raised, err := allowInstances(); {
	case err != nil:
		return fmt.Errorf("allow more inotify instances: %w", err)
	case raised:
		klog.FromContext(ctx).Info("Raised fs.inotify.max_user_instances, which kubelets need", "to", inotifyInstances)
	}
	janitor, err := startJanitor(f.Cgroup)
	if err != nil {
		return err
	}
	defer janitor.finish()
	port, stop, err := f.registry.Listen()
	if err != nil {
		return err
	}
	defer stop()
	factory := informers.NewSharedInformerFactoryWithOptions(f.Client, 0, informers.WithNamespace(f.Namespace))
	configs := factory.Core().V1().ConfigMaps()
	if _, err := configs.Informer().AddEventHandler(handlers.OnEvent(f.wakeUp)); err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	defer factory.Shutdown()
	for ctx.Err() == nil {
		again, err := f.sync(ctx, configs.Lister(), port)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Info("Cannot update all machines yet; trying again", "err", err, "after", retryPeriod)
			again = retryPeriod
		}
		f.wait(ctx, again)
	}
	return f.endAll()
}

func (f *Fleet) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default: // it will run anyway
	}
}

// wait waits until something changes, or for a time if it is not zero.
func (f *Fleet) wait(ctx context.Context, again time.Duration) {
	var alarm <-chan time.Time
	if again > 0 {
		timer := time.NewTimer(again)
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-ctx.Done():
	case <-f.wake:
	case <-alarm:
	}
}

// sync makes machines run as their records say, and returns when to do so again, 0 if nothing is to come.
func (f *Fleet) sync(ctx context.Context, configs corelisters.ConfigMapLister, registryPort int) (again time.Duration, err error) {
	all, err := configs.ConfigMaps(f.Namespace).List(labels.Everything())
	if err != nil {
		return 0, err
	}
	state, err := readState(all, f.faults)
	f.faults = state.faults
	if problem := fmt.Sprint(err); err != nil && problem != f.problem {
		klog.FromContext(ctx).Info("Cannot read all that describes machines", "err", err)
		f.problem = problem
	}
	f.registry.Set(registry.Line(state.faults.Registry))
	plan := newPlan(state, f.runningIDs(), time.Now())
	var steps []func() error
	for name, forget := range plan.end {
		steps = append(steps, func() error { return f.end(ctx, name, forget) })
	}
	for _, v := range plan.boot {
		steps = append(steps, func() error { return f.boot(ctx, v, registryPort) })
	}
	for name, harm := range plan.suffer {
		steps = append(steps, func() error { return f.machine(name).suffer(harm.cut, harm.halted) })
	}
	return plan.again, errors.Join(utilerrors.AggregateGoroutines(steps...), f.forgetLeft(state))
}

func (f *Fleet) machine(name string) *machine {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running[name]
}

// runningIDs are the provider ids of the machines that run, or have ended by themselves, which have none.
func (f *Fleet) runningIDs() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := map[string]string{}
	for name, m := range f.running {
		if ids[name] = m.spec.ProviderID; !m.isRunning() {
			ids[name] = ""
		}
	}
	return ids
}

// boot starts a machine.
func (f *Fleet) boot(ctx context.Context, v virtual.VM, registryPort int) error {
	template, err := f.Machines.Machines(f.Namespace).Get(ctx, v.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // its record goes, too
	}
	if err != nil {
		return fmt.Errorf("read machine %s: %w", v.Name, err)
	}
	s, err := f.specOf(v, template.Spec.NodeTemplateSpec.Spec.Taints)
	if err != nil {
		return err
	}
	kubeconfig, err := f.Kubeconfig("system:node:"+v.Name, "system:nodes")
	if err != nil {
		return err
	}
	m, err := boot(s, kubeconfig, map[string]dialer{apiServerSocket: dialPort(f.APIServer), registrySocket: dialPort(registryPort)})
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.running[v.Name] = m
	f.mu.Unlock()
	go func() {
		<-m.ended
		f.wakeUp()
	}()
	klog.FromContext(ctx).Info("Booted machine", "machine", v.Name, "process", m.init.Process.Pid, "taints", len(s.Taints))
	return nil
}

// specOf returns the machine of a record.
func (f *Fleet) specOf(v virtual.VM, template []corev1.Taint) (*spec, error) {
	reserved, err := reservedFor(v.Hardware.Allocatable)
	if err != nil {
		return nil, err
	}
	s := &spec{
		Name: v.Name, ProviderID: v.ProviderID(), Dir: f.dir(v.Name), Programs: f.Programs,
		Address: f.address(v.Name), Cgroup: filepath.Join(f.Cgroup, v.Name), APIServer: f.APIServer,
		Labels: v.Labels(), Taints: v.TaintsWith(template), Reserved: reserved, CA: f.CA,
	}
	pods, disk := v.Hardware.Capacity[corev1.ResourcePods], v.Hardware.Capacity[corev1.ResourceEphemeralStorage]
	s.Pods, s.Disk = pods.Value(), disk.Value()
	return s, nil
}

func (f *Fleet) dir(machine string) string { return filepath.Join(f.Dir, machine) }

// address returns the address of a machine: the one that it has, or one that no other machine has.
func (f *Fleet) address(machine string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, has := f.addresses[machine]; !has {
		taken := slices.Collect(maps.Values(f.addresses))
		n := 0
		for slices.Contains(taken, nodeAddress(n)) {
			n++
		}
		f.addresses[machine] = nodeAddress(n)
	}
	return f.addresses[machine]
}

func nodeAddress(n int) string { return fmt.Sprintf("10.200.%d.%d", n/250, n%250+1) }

// end ends a machine. If it is to be forgotten, its disk and its Node go, too.
func (f *Fleet) end(ctx context.Context, name string, forget bool) error {
	m := f.machine(name)
	if err := m.end(); err != nil {
		return fmt.Errorf("end machine %s: %w", name, err)
	}
	if forget {
		if err := f.deleteNode(ctx, m.spec); err != nil {
			return fmt.Errorf("delete node %s: %w", name, err)
		}
		if err := os.RemoveAll(m.spec.Dir); err != nil {
			return fmt.Errorf("forget machine %s: %w", name, err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.running, name)
	if forget {
		delete(f.addresses, name)
	}
	klog.FromContext(ctx).Info("Ended machine", "machine", name, "forgotten", forget)
	return nil
}

// deleteNode deletes the Node of a machine that is gone, as a cloud controller does: its kubelet may have
// registered after the driver has deleted it.
func (f *Fleet) deleteNode(ctx context.Context, s *spec) error {
	node, err := f.Client.CoreV1().Nodes().Get(ctx, s.Name, metav1.GetOptions{})
	if err == nil && node.Spec.ProviderID == s.ProviderID {
		err = f.Client.CoreV1().Nodes().Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &node.UID}})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// forgetLeft removes the folders of machines that have no record, and do not run.
func (f *Fleet) forgetLeft(s state) error {
	entries, err := os.ReadDir(f.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, recorded := s.vms[e.Name()]; !recorded && f.machine(e.Name()) == nil {
			if err := os.RemoveAll(f.dir(e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *Fleet) endAll() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var steps []func() error
	for _, m := range f.running {
		steps = append(steps, m.end)
	}
	return utilerrors.AggregateGoroutines(steps...)
}
