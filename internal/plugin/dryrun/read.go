// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/connect"
	"github.com/evenkeel/evenkeel/internal/plugin/read"
	"github.com/evenkeel/evenkeel/internal/target"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancerapi "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/balancer"
)

// Clients read both clusters, and cannot write.
type Clients struct {
	Control   dynamic.Interface
	Discovery discovery.DiscoveryInterface
	// Target is nil if there is no target cluster. Same reports whether it is the control cluster.
	Target dynamic.Interface
	Same   bool
	// target is its configuration.
	target *rest.Config
}

// NewClients returns clients that send only reads. Target is nil if there is no target cluster, and
// the same as control if that cluster also has the Nodes.
func NewClients(control, target *rest.Config) (Clients, error) {
	c := Clients{Same: target == control && target != nil}
	if target != nil {
		c.target = readOnly(target)
	}
	var err error
	if c.Control, err = dynamic.NewForConfig(readOnly(control)); err != nil {
		return Clients{}, fmt.Errorf("connect to the control cluster: %w", err)
	}
	if c.Discovery, err = discovery.NewDiscoveryClientForConfig(readOnly(control)); err != nil {
		return Clients{}, fmt.Errorf("connect to the control cluster: %w", err)
	}
	switch {
	case c.Same:
		c.Target = c.Control
	case target != nil:
		if c.Target, err = dynamic.NewForConfig(c.target); err != nil {
			return Clients{}, fmt.Errorf("connect to the target cluster: %w", err)
		}
	}
	return c, nil
}

// BalancerClients returns the clients that a Balancer's preview needs.
func (c Clients) BalancerClients() balancer.Clients {
	return balancer.Clients{Dynamic: c.Control, Discovery: c.Discovery}
}

// readOnly returns a configuration whose clients refuse to send anything except reads.
func readOnly(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1 // all kinds are read concurrently, and the server has limits of its own
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return reader{inner} })
	return config
}

// reader lets only reads pass.
type reader struct{ inner http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r reader) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		return nil, fmt.Errorf("%s %s: plan writes nothing", request.Method, request.URL.Path)
	}
	return r.inner.RoundTrip(request)
}

var buffersResource = v1beta1.SchemeGroupVersion.WithResource("capacitybuffers")

// ofControl tells pods of the control cluster from those of the target cluster.
const ofControl = " of the control cluster"

// patience limits how long a single request may take.
const patience = 30 * time.Second

// Read reads everything for a prediction, of one namespace or of all. Missing describes what cannot
// be read; it is an error only if MachineDeployments and Balancers cannot be read, or the machines of
// MachineDeployments.
func (c Clients) Read(ctx context.Context, namespace string) (Objects, error) {
	r := &reading{ctx: ctx, o: Objects{At: time.Now(), Target: c.Target != nil}}
	machines := machine.SchemeGroupVersion.WithResource
	c.readControl(r, namespace, machines)
	if c.Target != nil {
		c.readTarget(r)
	}
	r.wait()
	if r.failed["machinedeployments"] != nil && r.failed["balancers"] != nil {
		return Objects{}, fmt.Errorf("list machinedeployments: %w", r.failed["machinedeployments"])
	}
	for _, name := range []string{"machinesets", "machines"} {
		// Without them, all machines would seem to be missing.
		if err := r.failed[name]; err != nil && len(r.o.Deployments) > 0 {
			return Objects{}, fmt.Errorf("list %s: %w", name, err)
		}
	}
	if err := c.readWorkloads(r, namespace); err != nil {
		return Objects{}, err
	}
	if c.Same {
		r.o.Own, r.o.OwnNodes = r.o.Pods, r.o.Nodes
	}
	r.reportMissing()
	return r.o, nil
}

func (c Clients) readControl(r *reading, namespace string, machines func(string) schema.GroupVersionResource) {
	r.needed(true)
	listInto(r, c.Control, machines("machinedeployments"), namespace, &r.o.Deployments)
	listInto(r, c.Control, machines("machinesets"), namespace, &r.o.Sets)
	listInto(r, c.Control, machines("machines"), namespace, &r.o.Machines)
	listInto(r, c.Control, machines("machineclasses"), namespace, &r.o.Classes)
	listInto(r, c.Control, balancerapi.SchemeGroupVersion.WithResource("balancers"), namespace, &r.o.Balancers)
	listInto(r, c.Control, autoscaling.SchemeGroupVersion.WithResource("federatedhorizontalpodautoscalers"), namespace, &r.o.Federated)
	listInto(r, c.Control, autoscaling.SchemeGroupVersion.WithResource("reserves"), namespace, &r.o.Reserves)
	listInto(r, c.Control, autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"), namespace, &r.o.Autoscalers)
	if !c.Same {
		r.where = ofControl
		listInto(r, c.Control, corev1.SchemeGroupVersion.WithResource("pods"), namespace, &r.o.Own)
		listInto(r, c.Control, corev1.SchemeGroupVersion.WithResource("nodes"), "", &r.o.OwnNodes)
		r.where = ""
	}
	c.readGarden(r, namespace)
}

// readGarden reads the kinds of a Gardener, which most clusters do not have.
func (c Clients) readGarden(r *reading, namespace string) {
	garden := schema.GroupVersion{Group: "extensions.gardener.cloud", Version: "v1alpha1"}
	_, err := connect.Within(r.ctx, func() (*metav1.APIResourceList, error) {
		return c.Discovery.ServerResourcesForGroupVersion(garden.String())
	})
	switch {
	case err == nil:
		r.o.Garden = true
		listInto(r, c.Control, garden.WithResource("workers"), namespace, &r.o.Workers)
		listInto(r, c.Control, garden.WithResource("clusters"), "", &r.o.Clusters)
	case !apierrors.IsNotFound(err):
		r.addFailure("workers", err, true)
	}
}

func (c Clients) readTarget(r *reading) {
	core, storage := corev1.SchemeGroupVersion.WithResource, storagev1.SchemeGroupVersion.WithResource
	r.needed(true)
	listInto(r, c.Target, core("nodes"), "", &r.o.Nodes)
	listInto(r, c.Target, core("pods"), "", &r.o.Pods)
	listInto(r, c.Target, policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), "", &r.o.Budgets)
	listInto(r, c.Target, core("persistentvolumeclaims"), "", &r.o.Claims)
	listInto(r, c.Target, core("persistentvolumes"), "", &r.o.Volumes)
	listInto(r, c.Target, storage("storageclasses"), "", &r.o.StorageClasses)
	listInto(r, c.Target, storage("csidrivers"), "", &r.o.Drivers)
	listInto(r, c.Target, appsv1.SchemeGroupVersion.WithResource("daemonsets"), "", &r.o.Daemons)
	listInto(r, c.Target, appsv1.SchemeGroupVersion.WithResource("replicasets"), "", &r.o.ReplicaSets)
	listInto(r, c.Target, batchv1.SchemeGroupVersion.WithResource("jobs"), "", &r.o.Jobs)
	listInto(r, c.Target, target.PodGroupsResource, "", &r.o.PodGroups)
	devices := resourceapi.SchemeGroupVersion.WithResource
	listInto(r, c.Target, devices("resourceslices"), "", &r.o.Slices)
	listInto(r, c.Target, devices("deviceclasses"), "", &r.o.DeviceClasses)
	listInto(r, c.Target, devices("resourceclaims"), "", &r.o.DeviceClaims)
	listInto(r, c.Target, devices("resourceclaimtemplates"), "", &r.o.ClaimTemplates)
	listInto(r, c.Target, buffersResource, "", &r.o.Buffers)
}

// readWorkloads reads what Balancers scale.
func (c Clients) readWorkloads(r *reading, namespace string) error {
	preview, err := balancer.NewPreview(c.BalancerClients())
	if err != nil {
		return fmt.Errorf("find workloads: %w", err)
	}
	found := map[schema.GroupVersionResource]*[]*unstructured.Unstructured{}
	r.needed(true)
	for _, b := range r.o.Balancers {
		for _, resource := range preview.Resources(b) {
			if resource.Group != machine.GroupName && found[resource] == nil {
				found[resource] = &[]*unstructured.Unstructured{}
				listInto(r, c.Control, resource, namespace, found[resource])
			}
		}
	}
	r.wait()
	r.o.Workloads = map[schema.GroupVersionResource][]*unstructured.Unstructured{}
	for resource, objects := range found {
		if r.failed[resource.Resource] == nil {
			r.o.Workloads[resource] = *objects
		}
	}
	return nil
}

// reading is a number of lists in progress.
type reading struct {
	ctx    context.Context
	o      Objects
	missed bool
	// where is added to the names of the following lists.
	where   string
	running sync.WaitGroup

	mu     sync.Mutex
	failed map[string]error
	unread map[string]string
	lines  []string
}

// needed sets whether it matters if the following lists cannot be read.
func (r *reading) needed(is bool) { r.missed = is }

func (r *reading) wait() { r.running.Wait() }

// reportMissing adds the missing kinds to the objects.
func (r *reading) reportMissing() {
	slices.Sort(r.lines)
	r.o.Missing, r.o.Unread = r.lines, r.unread
}

func (r *reading) addFailure(name string, err error, missed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed, r.unread = map[string]error{}, map[string]string{}
	}
	r.failed[name] = err
	why := err.Error()
	switch {
	case apierrors.IsNotFound(err):
		why = "not installed in this cluster"
	case apierrors.IsForbidden(err):
		why = "no rights to list them"
	}
	if !apierrors.IsNotFound(err) {
		r.unread[name] = why
	}
	if missed && !(name == buffersResource.Resource && apierrors.IsNotFound(err)) { // most clusters have none
		r.lines = append(r.lines, name+": "+why)
	}
}

// listInto lists a resource in the background.
func listInto[T any](r *reading, client dynamic.Interface, resource schema.GroupVersionResource, namespace string, into *[]*T) {
	missed, name := r.missed, resource.Resource+r.where
	r.running.Go(func() {
		pages := read.Pages(patience, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.Resource(resource).Namespace(namespace).List(ctx, o)
		})
		err := pages.EachListItem(r.ctx, metav1.ListOptions{}, func(item runtime.Object) error {
			if len(*into) == read.MaxObjects {
				return read.ErrTooMany
			}
			o, err := convertTo[T](item)
			*into = append(*into, o)
			return err
		})
		if err != nil {
			*into = nil // a prediction from a part would be wrong
			r.addFailure(name, err, missed)
		}
	})
}

func convertTo[T any](item runtime.Object) (*T, error) {
	u, ok := item.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("a list has %T in it", item)
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	if same, ok := any(u).(*T); ok {
		return same, nil
	}
	o := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	if pod, ok := any(o).(*corev1.Pod); ok {
		return any(read.Pod(pod)).(*T), nil
	}
	return o, nil
}
