// SPDX-License-Identifier: Apache-2.0

// Package kueue runs Jobs in the queues of an unmodified Kueue, whose ProvisioningRequests are
// served from the reserve: a Job starts once machines are booked for all its pods.
package kueue

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/chart"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

const (
	namespace = "default"
	manager   = "machine-controller-manager"
	atMost    = 3 * time.Minute
	// queueLabel names the queue of a Job, and priorityLabel its priority among those of the queue.
	queueLabel, priorityLabel = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
	// groupLabel names the group with which a plain pod is admitted.
	groupLabel = "kueue.x-k8s.io/pod-group-name"
)

var (
	cluster *localcluster.Cluster
	kube    kubernetes.Interface
	ours    versioned.Interface
)

func TestKueue(t *testing.T) {
	SetDefaultEventuallyPollingInterval(250 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(250 * time.Millisecond)
	SetDefaultEventuallyTimeout(atMost)
	RegisterFailHandler(Fail)
	RunSpecs(t, "Kueue")
}

// failed is set by the first spec that fails: its cluster's logs are kept.
var failed bool

var _ = AfterEach(func() { failed = failed || CurrentSpecReport().Failed() })

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{Name: "kueue", Out: GinkgoWriter, UnsafeNoFsync: true, Fresh: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		if failed || os.Getenv("EVENKEEL_E2E_KEEP") != "" {
			fmt.Fprintln(GinkgoWriter, "logs are in", cluster.Dir())
			Expect(cluster.Stop()).To(Succeed())
			return
		}
		Expect(cluster.Reset()).To(Succeed())
	})
	kube, ours = kubernetes.NewForConfigOrDie(cluster.Config()), versioned.NewForConfigOrDie(cluster.Config())
	Expect(cluster.Apply(ctx, "kubernetes/crds", "kubernetes/optional-crds", "kubernetes/deploy/manager/access.yaml", "kubernetes/deploy/target/access.yaml",
		"kubernetes/deploy/booking/access.yaml")).To(Succeed())
	account, err := cluster.AccountKubeconfig(ctx, chart.Namespace, manager)
	Expect(err).NotTo(HaveOccurred())
	for _, program := range []localcluster.Program{
		{Name: "machine-controller"},
		{Name: manager, Kubeconfig: account, Flags: []string{"--v=3", "--controllers=mcm,release,reserves,booking"}},
	} {
		_, err := cluster.RunProgram(ctx, program)
		Expect(err).NotTo(HaveOccurred())
	}
	_, err = cluster.RunKueue(ctx)
	Expect(err).NotTo(HaveOccurred())
})

// apply applies YAML.
func apply(ctx context.Context, format string, values ...any) {
	GinkgoHelper()
	file, err := os.CreateTemp(GinkgoT().TempDir(), "*.yaml")
	Expect(err).NotTo(HaveOccurred())
	_, err = fmt.Fprintf(file, format, values...)
	Expect(err).NotTo(HaveOccurred())
	Expect(file.Close()).To(Succeed())
	Expect(cluster.Apply(ctx, file.Name())).To(Succeed())
}

// pool is a MachineDeployment, alone in a zone of its own, and a queue of Kueue for all of its machines.
type pool struct{ name string }

// newPool makes a pool with a reserve.
func newPool(ctx context.Context, name string, reserve int) pool {
	GinkgoHelper()
	apply(ctx, `
apiVersion: v1
kind: Secret
metadata: {name: %[1]s}
stringData: {userData: none}
---
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineClass
metadata: {name: %[1]s}
provider: virtual
secretRef: {name: %[1]s, namespace: default}
providerSpec: {zone: %[1]s, region: local, instanceType: virtual.large, capacity: {cpu: "4", memory: 16Gi}, bootDelay: 1s}
nodeTemplate: {capacity: {cpu: "4", memory: 16Gi, gpu: "0"}, instanceType: virtual.large, region: local, zone: %[1]s}
---
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineDeployment
metadata: {name: %[1]s, annotations: {evenkeel.machine.sapcloud.io/bounds: "0:%[2]d:%[2]d"}}
spec:
  selector: {matchLabels: {name: %[1]s}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  template:
    metadata: {labels: {name: %[1]s}}
    spec: {class: {kind: MachineClass, name: %[1]s}}
`, name, reserve)
	p := pool{name}
	DeferCleanup(func(ctx context.Context) {
		Expect(ours.MachineV1alpha1().MachineDeployments(namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
	Eventually(p.ready).WithContext(ctx).Should(Equal(reserve))
	return p
}

// restored is how many machines are ready in reserve, once idle ones have been given back.
func (p pool) restored(ctx context.Context) (int, error) {
	if err := p.giveBack(ctx); err != nil {
		return 0, err
	}
	return p.ready(ctx)
}

// ready is how many machines are ready in reserve.
func (p pool) ready(ctx context.Context) (int, error) {
	md, err := ours.MachineV1alpha1().MachineDeployments(namespace).Get(ctx, p.name, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	return int(md.Status.ReadyExcessReplicas), nil
}

// booked is how many machines are dedicated to requests.
func (p pool) booked(ctx context.Context) (n int, err error) {
	all, err := ours.MachineV1alpha1().Machines(namespace).List(ctx, metav1.ListOptions{LabelSelector: "name=" + p.name})
	if err != nil {
		return 0, err
	}
	for _, m := range all.Items {
		if m.Annotations[machine.DedicatedAnnotation] != "" {
			n++
		}
	}
	return n, nil
}

// giveBack lowers replicas to the machines that run pods, as an autoscaler does with machines that are idle, unless pods wait.
func (p pool) giveBack(ctx context.Context) error {
	md, err := ours.MachineV1alpha1().MachineDeployments(namespace).Get(ctx, p.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	pods, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.phase!=Succeeded"})
	if err != nil {
		return err
	}
	busy := map[string]bool{}
	for _, pod := range pods.Items {
		switch {
		case pod.Spec.NodeSelector[corev1.LabelTopologyZone] != p.name:
		case pod.Spec.NodeName == "":
			return nil
		default:
			busy[pod.Spec.NodeName] = true
		}
	}
	md.Spec.Replicas = int32(len(busy))
	_, err = ours.MachineV1alpha1().MachineDeployments(namespace).Update(ctx, md, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

const (
	// checked has Jobs wait in a queue until machines are booked, and unchecked starts them at once.
	checked   = "admissionChecksStrategy: {admissionChecks: [{name: reserved}]}"
	unchecked = ""
)

// newQueue makes a queue with a quota of CPU, in which a more important Job ends a less important one.
func newQueue(ctx context.Context, name string, cpu int, checks string) {
	GinkgoHelper()
	apply(ctx, `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: reserved, resources: [{name: cpu, nominalQuota: "%[2]d"}]}]
  %[3]s
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: %[1]s}
spec: {clusterQueue: %[1]s}
`, name, cpu, checks)
}

// job is a Job in a queue. Each of its pods needs a machine of the pool.
type job struct {
	name, queue, priority string
	pods                  int
}

// wholeMachine is a pod that needs a machine of its own.
func (p pool) wholeMachine() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{corev1.LabelTopologyZone: p.name}, TerminationGracePeriodSeconds: ptr.To[int64](1),
		Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")},
		}}},
	}
}

// submitPods creates plain pods that a queue admits together.
func (p pool) submitPods(ctx context.Context, group, queue string, pods int) {
	GinkgoHelper()
	for i := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(group, "-", i), Labels: map[string]string{queueLabel: queue, groupLabel: group},
			Annotations: map[string]string{"kueue.x-k8s.io/pod-group-total-count": strconv.Itoa(pods)}}, Spec: p.wholeMachine()}
		_, err := kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	DeferCleanup(func(ctx context.Context) {
		complete(ctx, labelled(groupLabel+"="+group)) // Kueue keeps the pods of a group that has not ended
		Expect(kube.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: groupLabel + "=" + group})).To(Succeed())
		Eventually(labelled(groupLabel + "=" + group)).WithContext(ctx).Should(BeEmpty())
	})
}

// labelled returns the pods that a selector selects.
func labelled(selector string) func(context.Context) ([]corev1.Pod, error) {
	return func(ctx context.Context) ([]corev1.Pod, error) {
		list, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	}
}

// running is how many pods run.
func running(ctx context.Context, list func(context.Context) ([]corev1.Pod, error)) (n int, err error) {
	all, err := list(ctx)
	for _, pod := range all {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			n++
		}
	}
	return n, err
}

// complete has pods succeed, as a kubelet says of pods whose containers have ended.
func complete(ctx context.Context, list func(context.Context) ([]corev1.Pod, error)) {
	GinkgoHelper()
	all, err := list(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, pod := range all {
		patch := []byte(`{"status":{"phase":"Succeeded"}}`)
		_, err := kube.CoreV1().Pods(namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		Expect(err).NotTo(HaveOccurred())
	}
}

// setReserve changes the reserve of the pool, and its maximum.
func (p pool) setReserve(ctx context.Context, machines int) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"0:%d:%d"}}}`, machine.BoundsAnnotation, machines, machines)
	_, err := ours.MachineV1alpha1().MachineDeployments(namespace).Patch(ctx, p.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (p pool) submit(ctx context.Context, j job) job {
	GinkgoHelper()
	labels := map[string]string{queueLabel: j.queue}
	if j.priority != "" {
		labels[priorityLabel] = j.priority
	}
	object := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: j.name, Labels: labels}, Spec: batchv1.JobSpec{
		Parallelism: ptr.To(int32(j.pods)), Completions: ptr.To(int32(j.pods)), Template: corev1.PodTemplateSpec{Spec: p.wholeMachine()},
	}}
	// The webhooks of Kueue are not there while it restarts.
	Eventually(func() error {
		_, err := kube.BatchV1().Jobs(namespace).Create(ctx, object, metav1.CreateOptions{})
		return err
	}).Should(Succeed())
	DeferCleanup(func(ctx context.Context) {
		j.cancel(ctx)
		Eventually(j.allPods).WithContext(ctx).Should(BeEmpty())
	})
	return j
}

// cancel deletes a Job, unless that has been done.
func (j job) cancel(ctx context.Context) {
	GinkgoHelper()
	err := kube.BatchV1().Jobs(namespace).Delete(ctx, j.name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)})
	Expect(err).To(Or(Not(HaveOccurred()), Satisfy(apierrors.IsNotFound)))
}

func (j job) allPods(ctx context.Context) ([]corev1.Pod, error) {
	return labelled(batchv1.JobNameLabel + "=" + j.name)(ctx)
}

// running is how many of its pods run.
func (j job) running(ctx context.Context) (int, error) { return running(ctx, j.allPods) }

// runningWith is how many of its pods run, while idle machines of the pool are given back.
func (j job) runningWith(ctx context.Context, p pool) (int, error) {
	if err := p.giveBack(ctx); err != nil {
		return 0, err
	}
	return j.running(ctx)
}

// suspended reports whether it waits in its queue.
func (j job) suspended(ctx context.Context) (bool, error) {
	object, err := kube.BatchV1().Jobs(namespace).Get(ctx, j.name, metav1.GetOptions{})
	return err == nil && ptr.Deref(object.Spec.Suspend, false), err
}

func (j job) complete(ctx context.Context) {
	GinkgoHelper()
	complete(ctx, j.allPods)
}

// request returns the condition Provisioned of the request that Kueue made for a Job; empty if there is none.
func (j job) request(ctx context.Context) (reason string, err error) {
	list, err := ours.ProvisioningRequestV1().ProvisioningRequests(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for _, r := range list.Items {
		if !strings.HasPrefix(r.Name, "job-"+j.name+"-") {
			continue
		}
		for _, c := range r.Status.Conditions {
			if c.Type == provisioningv1.ConditionProvisioned {
				reason = c.Reason
			}
		}
	}
	return reason, nil
}
