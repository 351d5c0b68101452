// SPDX-License-Identifier: Apache-2.0

// Package target is the one cache of the target cluster that all controllers of a process share.
//
// Users decide how many objects it has and how large they are. Therefore, an informer starts when
// the first controller needs its kind. A transform keeps only the fields that a controller reads,
// and limits the size of objects that any user can create. If a controller is to read another
// field, add it to the transform of its kind and to the test of the transform.
//
// Objects in the cache share parts. Never change an object.
package target

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/access"
	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// Indexes of Nodes and of pods. Pods also have [stores.ByNode].
const (
	// ByProviderID is the index of Nodes by spec.providerID.
	ByProviderID = "provider-id"
	// ByReadiness is the index of Nodes with the single value [Unready].
	ByReadiness = "readiness"
	Unready     = "unready"
	// ByPlacement is the index of unfinished pods without a Node: [Nominated] for one, or
	// [Waiting].
	ByPlacement = "placement"
	Waiting     = "waiting"
	Nominated   = "nominated"
)

// Informers of the target cluster. Methods can be called at any time, also concurrently.
type Informers struct {
	// nodes contains the informer of Nodes, factory all others.
	nodes, factory informers.SharedInformerFactory
	client         kubernetes.Interface
	rights         *access.Rights
	devices        *DeviceCounts
}

// New returns informers that read through client. None is started; client may be nil if none ever
// will be. Without rights, all optional kinds are assumed to be readable.
func New(client kubernetes.Interface, rights *access.Rights) *Informers {
	if rights == nil {
		rights = access.New(clock.RealClock{})
	}
	i := &Informers{
		nodes:   newFactory(client, Strip),
		factory: newFactory(client, (&sharing{last: map[shape]*corev1.Pod{}}).stripAndShare),
		client:  client, rights: rights,
	}
	i.devices = newDeviceCounts(i)
	return i
}

func newFactory(client kubernetes.Interface, transform cache.TransformFunc) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(transform), informers.WithTweakListOptions(written.ListStored))
}

// Start starts the informers that were requested and have not been started yet. They run until ctx
// ends.
func (i *Informers) Start(ctx context.Context) {
	i.StartNodes(ctx)
	i.factory.StartWithContext(ctx)
}

// StartNodes starts only the informer of Nodes, if it was requested, and lets [DeviceCounts] read. A
// cluster has far fewer Nodes than pods, and they change less.
func (i *Informers) StartNodes(ctx context.Context) {
	i.nodes.StartWithContext(ctx)
	i.devices.start(ctx)
}

// Shutdown waits until all informers have ended. None can be started afterwards.
func (i *Informers) Shutdown() {
	i.devices.reading.Wait()
	i.nodes.Shutdown()
	i.factory.Shutdown()
}

// DeviceCounts counts the devices of Nodes; nil if there is no target cluster. What it reads is read
// once somebody asks.
func (i *Informers) DeviceCounts() *DeviceCounts {
	if i == nil {
		return nil
	}
	return i.devices
}

// Pods returns the informer of pods, with the indexes [stores.ByNode] and [ByPlacement].
func (i *Informers) Pods() cache.SharedIndexInformer {
	return i.factory.InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		indexers := stores.PodIndex()
		indexers[ByPlacement] = placement
		return coreinformers.NewFilteredPodInformer(client, corev1.NamespaceAll, resync, indexers, written.ListStored)
	})
}

// Nodes returns the informer of Nodes, with the indexes [ByProviderID] and [ByReadiness].
func (i *Informers) Nodes() cache.SharedIndexInformer {
	return i.nodes.InformerFor(&corev1.Node{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewFilteredNodeInformer(client, resync, cache.Indexers{ByProviderID: providerID, ByReadiness: readiness}, written.ListStored)
	})
}

// CountUnready returns how many Nodes of a store with the index [ByReadiness] are not ready, and how many
// there are. The latter is 0 if all are ready, as nearly always: in a large cluster, counting them takes
// longer than a decision.
func CountUnready(nodes cache.Indexer) (unready, all int) {
	keys, _ := nodes.IndexKeys(ByReadiness, Unready) // the index is there
	if len(keys) == 0 {
		return 0, 0
	}
	return len(keys), len(nodes.ListKeys())
}

// Budgets returns the informer of PodDisruptionBudgets, which waits while the process lacks the right
// to read them. Do not wait for it: see [Informers.BudgetsUnknown].
func (i *Informers) Budgets() cache.SharedIndexInformer {
	return access.Informer(i.factory.InformerFor, i.rights, budgetsRule, &policyv1.PodDisruptionBudget{}, func(c kubernetes.Interface) access.Reader[*policyv1.PodDisruptionBudgetList] {
		return c.PolicyV1().PodDisruptionBudgets(corev1.NamespaceAll)
	})
}

// BudgetsUnknown returns why PodDisruptionBudgets are not known; empty if they are.
func (i *Informers) BudgetsUnknown() string {
	switch {
	case i.rights.Lacks(budgetsRule):
		return "Evenkeel may not read them in the target cluster"
	case !i.Budgets().HasSynced():
		return "they have not been read yet"
	}
	return ""
}

var budgetsRule = access.Rule{
	Cluster: "target", Resource: policyv1.Resource("poddisruptionbudgets"), Without: "No machine is drained or moved while pods run on it",
}

// DaemonSets returns the informer of DaemonSets.
func (i *Informers) DaemonSets() cache.SharedIndexInformer {
	return i.factory.Apps().V1().DaemonSets().Informer()
}

// ReplicaSets returns the informer of ReplicaSets.
func (i *Informers) ReplicaSets() cache.SharedIndexInformer {
	return i.factory.Apps().V1().ReplicaSets().Informer()
}

// Jobs returns the informer of Jobs, which waits while the process lacks the right to read them.
func (i *Informers) Jobs() cache.SharedIndexInformer {
	return access.Informer(i.factory.InformerFor, i.rights, jobsRule, &batchv1.Job{}, func(c kubernetes.Interface) access.Reader[*batchv1.JobList] {
		return c.BatchV1().Jobs(corev1.NamespaceAll)
	})
}

var jobsRule = access.Rule{
	Cluster: "target", Resource: batchv1.Resource("jobs"), Without: "Reserve machines are not released for pods that a Job has yet to create",
}

// PodTemplates returns the informer of PodTemplates, which waits while the process lacks the right to
// read them. Do not wait for it: see [Informers.PodTemplatesUnknown].
func (i *Informers) PodTemplates() cache.SharedIndexInformer {
	return access.Informer(i.factory.InformerFor, i.rights, podTemplatesRule, &corev1.PodTemplate{}, func(c kubernetes.Interface) access.Reader[*corev1.PodTemplateList] {
		return c.CoreV1().PodTemplates(corev1.NamespaceAll)
	})
}

// PodTemplatesUnknown returns why PodTemplates are not known; empty if they are.
func (i *Informers) PodTemplatesUnknown() string {
	switch {
	case i.PodTemplates().HasSynced():
		return ""
	case i.rights.Lacks(podTemplatesRule):
		return podTemplatesRule.String()
	}
	return "PodTemplates have not been read yet"
}

var podTemplatesRule = access.Rule{
	Cluster: "target", Resource: corev1.Resource("podtemplates"), Without: "No machines are booked for ProvisioningRequests",
}

// PodGroupsResource is what [Informers.PodGroups] reads, which many clusters do not serve.
var PodGroupsResource = schedulingv1alpha2.SchemeGroupVersion.WithResource("podgroups")

// PodGroups returns the informer of PodGroups, which waits while the process lacks the right to read
// them. Request it only where they are served.
func (i *Informers) PodGroups() cache.SharedIndexInformer {
	return access.Informer(i.factory.InformerFor, i.rights, podGroupsRule, &schedulingv1alpha2.PodGroup{}, func(c kubernetes.Interface) access.Reader[*schedulingv1alpha2.PodGroupList] {
		return c.SchedulingV1alpha2().PodGroups(corev1.NamespaceAll)
	})
}

var podGroupsRule = access.Rule{
	Cluster: "target", Resource: PodGroupsResource.GroupResource(), Without: "Reserve machines are not released for pods of a PodGroup",
}

func placement(item any) ([]string, error) {
	pod, ok := item.(*corev1.Pod)
	switch {
	case !ok || pod.Spec.NodeName != "" || pool.Finished(pod):
		return nil, nil
	case pod.Status.NominatedNodeName != "":
		return []string{Nominated}, nil
	}
	return []string{Waiting}, nil
}

func providerID(item any) ([]string, error) {
	node, ok := item.(*corev1.Node)
	if !ok || node.Spec.ProviderID == "" {
		return nil, nil
	}
	return []string{node.Spec.ProviderID}, nil
}

func readiness(item any) ([]string, error) {
	node, ok := item.(*corev1.Node)
	if !ok || !pool.Unready(node) {
		return nil, nil
	}
	return []string{Unready}, nil
}
