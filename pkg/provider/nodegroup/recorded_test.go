// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing/synctest"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
	"github.com/evenkeel/evenkeel/test/recording"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// recordedKinds are the kinds of a recording by resource.
var recordedKinds = map[string]schema.GroupVersionKind{
	"machineclasses": mcm.SchemeGroupVersion.WithKind("MachineClass"), "machinedeployments": mcm.SchemeGroupVersion.WithKind("MachineDeployment"),
	"machinesets": mcm.SchemeGroupVersion.WithKind("MachineSet"), "machines": mcm.SchemeGroupVersion.WithKind("Machine"),
	"nodes": corev1.SchemeGroupVersion.WithKind("Node"),
}

// replay is a recording that is played again: its objects on a simulated API server, its calls to the server of node groups there.
type replay struct {
	*cluster
	dynamic dynamic.Interface
	patches *recording.Patches
	objects recording.Objects
	reader  *reader
}

// replayed plays a recording again, and returns what cluster-autoscaler changed, as in "raise pool 2".
func replayed(name string) (acts []string) {
	GinkgoHelper()
	steps, err := recording.Read(filepath.Join("testdata", "autoscaler", name+".jsonl"))
	Expect(err).NotTo(HaveOccurred())
	storm.Bubble(suite, func() {
		c := adopt(storm.NewWorld(sim.Options{Seed: 1}))
		defer c.end()
		r := &replay{cluster: c, dynamic: dynamic.NewForConfigOrDie(c.ConfigFor("recorded")), patches: &recording.Patches{}, objects: recording.Objects{}}
		r.reader = &reader{cluster: c, sizes: map[string]int32{}, asked: map[string][]string{}, failed: map[string]bool{}}
		c.Start(serving, func(ctx context.Context, config *rest.Config) error {
			config.Wrap(r.patches.Wrap)
			return server(c.wire)(ctx, config)
		})
		for i, step := range steps {
			time.Sleep(time.Until(step.Time()))
			synctest.Wait()
			if step.Object != "" {
				r.write(step)
				continue
			}
			for range max(1, step.Times) {
				r.call(step, fmt.Sprintf("line %d, %s %s at %.3f s", i+1, step.Call, step.Request, step.At))
			}
		}
		r.reader.atRest()
		for _, act := range r.reader.acts {
			acts = append(acts, act.String())
		}
	})
	return acts
}

// call makes a call again, and compares the answer and the writes.
func (r *replay) call(recorded recording.Step, where string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r.patches.Take()
	versions := r.versions()
	request, answer, err := r.objects.Play(ctx, r.wire.server, recorded)
	is, encoded := r.objects.NewCall(recorded.Call, nil, answer, err)
	Expect(encoded).NotTo(HaveOccurred())
	Expect(is.Code).To(Equal(recorded.Code), "%s: %v", where, err)
	Expect(timeless(is.Answer)).To(MatchJSON(timeless(recorded.Answer)), where)
	var writes []string
	for _, patch := range r.patches.Take() {
		Expect(patch.UID+" "+patch.ResourceVersion).To(BeElementOf(versions), "%s: each write says what it was decided on", where)
		for _, at := range recording.Times.FindAllString(string(patch.Change), -1) {
			Expect(time.Parse(time.RFC3339, at)).To(BeTemporally("~", time.Now(), 2*time.Second), "%s: times in %s", where, patch.Change)
		}
		writes = append(writes, timeless(patch.Change))
	}
	Expect(writes).To(HaveLen(len(recorded.Writes)), "%s: writes %v", where, writes)
	for i, write := range writes {
		Expect(write).To(MatchJSON(timeless(recorded.Writes[i])), where)
	}
	By(where)
	r.reader.read(recorded.Call, request, answer, err, len(writes) > 0)
}

// timeless is JSON with no time in it.
func timeless(text json.RawMessage) string {
	if text == nil {
		return "{}"
	}
	return recording.Times.ReplaceAllString(string(text), "TIME")
}

// versions are those of all MachineDeployments.
func (r *replay) versions() (all []string) {
	for _, d := range r.Objects(deploymentsGVR) {
		all = append(all, string(d.GetUID())+" "+d.GetResourceVersion())
	}
	return all
}

// write has the simulated API server store an object as it was recorded.
func (r *replay) write(step recording.Step) {
	GinkgoHelper()
	Expect(r.objects.Apply(step)).To(Succeed())
	ctx := context.Background()
	resource, name, _ := strings.Cut(step.Object, "/")
	kind := recordedKinds[resource]
	var client dynamic.ResourceInterface = r.dynamic.Resource(kind.GroupVersion().WithResource(resource))
	if resource != "nodes" {
		client = r.dynamic.Resource(kind.GroupVersion().WithResource(resource)).Namespace(ns)
	}
	stored, err := client.Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		Expect(err).NotTo(HaveOccurred())
	}
	is := r.recorded(kind, step.Object)
	switch {
	case is == nil:
		r.remove(client, stored)
		return
	case apierrors.IsNotFound(err):
		is.SetDeletionTimestamp(nil)
		stored, err = client.Create(ctx, is, metav1.CreateOptions{})
	case is.GetDeletionTimestamp() != nil && stored.GetDeletionTimestamp() == nil:
		Expect(client.Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		stored, err = client.Get(ctx, name, metav1.GetOptions{})
		fallthrough
	default:
		Expect(err).NotTo(HaveOccurred())
		is.SetResourceVersion(stored.GetResourceVersion())
		stored, err = client.Update(ctx, is, metav1.UpdateOptions{})
	}
	Expect(err).NotTo(HaveOccurred(), step.Object)
	if is.Object["status"] != nil {
		is.SetResourceVersion(stored.GetResourceVersion())
		_, err = client.UpdateStatus(ctx, is, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred(), step.Object)
	}
}

// recorded is an object as it was recorded, with the UIDs of its owners here, nil if it is gone.
func (r *replay) recorded(kind schema.GroupVersionKind, object string) *unstructured.Unstructured {
	GinkgoHelper()
	if r.objects[object] == nil {
		return nil
	}
	is := &unstructured.Unstructured{Object: map[string]any{}}
	Expect(json.Unmarshal(r.objects[object], &is.Object)).To(Succeed())
	is.SetGroupVersionKind(kind)
	owners := is.GetOwnerReferences()
	for i, owner := range owners {
		resource := strings.ToLower(owner.Kind) + "s"
		stored := r.Get(mcm.SchemeGroupVersion.WithResource(resource), ns, owner.Name)
		Expect(stored).NotTo(BeNil(), "%s of %s", owner.Name, object)
		owners[i].UID = stored.GetUID()
	}
	is.SetOwnerReferences(owners)
	return is
}

// remove deletes an object without its finalizers.
func (r *replay) remove(client dynamic.ResourceInterface, stored *unstructured.Unstructured) {
	GinkgoHelper()
	ctx := context.Background()
	if len(stored.GetFinalizers()) > 0 {
		stored.SetFinalizers(nil)
		_, err := client.Update(ctx, stored, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	if stored.GetDeletionTimestamp() == nil {
		Expect(client.Delete(ctx, stored.GetName(), metav1.DeleteOptions{})).To(Succeed())
	}
}

// An unmodified cluster-autoscaler was recorded, see test/README.md. Each answer is compared with the one that it got then, and judged by what it makes
// of it. What it changed is beside each story.
var _ = DescribeTable("What an unmodified cluster-autoscaler asked is answered as then", Label("recorded"),
	func(name string, changed ...string) { Expect(replayed(name)).To(Equal(changed)) },
	Entry("up to max and down; the reserve is used first", "reserve", "raise reserve 1", "remove Nodes of reserve 2"),
	Entry("a machine is drained", "drained", "remove Nodes of drained 1"),
	Entry("from zero and back", "empty", "raise empty 2", "remove Nodes of empty 2"),
	Entry("a group without capacity: what failed is removed, and another group is used", "outage",
		"raise outage-1 1", "remove unregistered machines of outage-1 1", "raise outage-2 1"),
	Entry("a machine that does not register is removed", "late", "raise late 1", "remove unregistered machines of late 1"),
	Entry("a target that no machine follows is lowered", "withdrawn", "raise withdrawn 1", "lower withdrawn 1"),
	Entry("it waits while too many Nodes are not ready", "unready", "raise unready 1"),
	Entry("it is restarted, bounds change, and min is kept", "restarted", "raise restarted 2", "remove Nodes of restarted 1"),
)

// reader judges answers by what cluster-autoscaler makes of them. It compares them with what the simulated API server stores, not with what
// was recorded.
type reader struct {
	*cluster
	// last is the call before.
	last string
	// sizes are the replicas of each group when the caller's loop began, with its own changes since.
	sizes map[string]int32
	// asked is what the caller asked about each group since it raised it.
	asked map[string][]string
	// failed are the machines that were reported as failed, until the caller removes them.
	failed map[string]bool
	acts   []act
}

// act is what the caller changed or tried to, in one call or in several in a row.
type act struct {
	what string
	by   int
}

func (a act) String() string { return fmt.Sprintf("%s %d", a.what, a.by) }

// did adds to what the caller did.
func (r *reader) did(what, group string, by int, err error) {
	if what += " " + group; err != nil {
		what += " " + code(err).String()
	}
	if end := len(r.acts) - 1; end >= 0 && r.acts[end].what == what {
		r.acts[end].by += by
		return
	}
	r.acts = append(r.acts, act{what, by})
}

// read judges one answer, to a call that wrote something or did not.
func (r *reader) read(method string, request, answer any, err error, wrote bool) {
	GinkgoHelper()
	if method != "NodeGroupNodes" { // which the caller also asks for in the background
		if r.last == "Refresh" {
			Expect(method).To(Equal("NodeGroups"), "each loop of the caller asks for the groups first, and remembers them")
		}
		r.last = method
	}
	switch q := request.(type) {
	case *pb.RefreshRequest:
		Expect(err).NotTo(HaveOccurred(), "the loop would end here")
		r.sizes = map[string]int32{}
		for _, d := range world.List[v1alpha1.MachineDeployment](r, deploymentsGVR) {
			r.sizes[d.Name] = pool.Requested(d)
		}
	case *pb.NodeGroupAutoscalingOptionsRequest:
		Expect(code(err)).To(Equal(codes.Unimplemented), "any other error would end the loop, and options would have a zero in them")
	case *pb.NodeGroupTemplateNodeInfoRequest:
		Expect(err).NotTo(HaveOccurred())
		r.useful(answer.(*pb.NodeGroupTemplateNodeInfoResponse))
	case *pb.NodeGroupTargetSizeRequest:
		r.asked[q.Id] = append(r.asked[q.Id], method)
		Expect(answer).To(HaveField("TargetSize", pool.Requested(r.deployment(q.Id))))
	case *pb.NodeGroupNodesRequest:
		r.asked[q.Id] = append(r.asked[q.Id], method)
		r.listed(q.Id, answer.(*pb.NodeGroupNodesResponse).Instances)
	}
	if wrote || err != nil {
		r.changed(request, err)
	}
}

// changed judges a call that changed something, by the replicas afterwards.
func (r *reader) changed(request any, err error) {
	GinkgoHelper()
	switch q := request.(type) {
	case *pb.NodeGroupIncreaseSizeRequest:
		r.did("raise", q.Id, int(q.Delta), err)
		r.polls(q.Id)
		Expect(err).NotTo(HaveOccurred(), "it asks for no more than max")
		Expect(pool.Requested(r.deployment(q.Id))).To(BeNumerically(">=", r.sizes[q.Id]+q.Delta), "otherwise, the caller waits for machines that never come")
		r.sizes[q.Id] += q.Delta
		r.asked[q.Id] = []string{"raised"}
	case *pb.NodeGroupDeleteNodesRequest:
		Expect(err).NotTo(HaveOccurred())
		for _, node := range q.Nodes {
			what := "remove Nodes of"
			if strings.HasPrefix(node.Name, plan.Placeholder) {
				what = "remove unregistered machines of"
			}
			r.did(what, q.Id, 1, err)
			if node.Annotations["k8s.io/cluster-autoscaler/fake-node-reason"] == "create-error" {
				Expect(r.failed).To(HaveKey(node.ProviderID), "it saw the error")
			}
			delete(r.failed, node.ProviderID)
		}
		r.sizes[q.Id] -= int32(len(q.Nodes))
		Expect(pool.Requested(r.deployment(q.Id))).To(Equal(r.sizes[q.Id]), "otherwise, a machine follows that the caller did not ask for")
	case *pb.NodeGroupDecreaseTargetSizeRequest:
		r.did("lower", q.Id, -int(q.Delta), err)
		Expect(r.settled(q.Id)).To(BeTrue(), "the caller would ask again in each loop, and do nothing else")
	}
}

// polls judges what the caller has done since it raised a group, if it did.
func (r *reader) polls(group string) {
	GinkgoHelper()
	if asked := r.asked[group]; len(asked) > 0 && asked[0] == "raised" {
		Expect(asked).To(ContainElements("NodeGroupTargetSize", "NodeGroupNodes"), "it waits for the machines of %s", group)
	}
}

// listed judges the instances of a group: a Node that is in the group but not in the list counts as deleted, and one that is in the list but not in
// the group as one that never registers.
func (r *reader) listed(group string, instances []*pb.Instance) {
	GinkgoHelper()
	listed := map[string]bool{}
	for _, i := range instances {
		listed[i.Id] = true
		Expect(i.Status.InstanceState).To(BeElementOf(pb.InstanceStatus_instanceDeleting, stateOf(i.Id)), i.Id)
		if i.Status.ErrorInfo != nil {
			Expect(i.Status.InstanceState).To(Equal(pb.InstanceStatus_instanceCreating), "the caller removes no other")
			Expect(i.Status.ErrorInfo.ErrorCode).NotTo(BeEmpty(), "the caller would not see the error")
			r.failed[i.Id] = true
		}
	}
	nodes, err := r.core.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, node := range nodes.Items {
		response, err := r.wire.server.NodeGroupForNode(context.Background(), &pb.NodeGroupForNodeRequest{Node: told(&node)})
		Expect(err).NotTo(HaveOccurred())
		Expect(response.NodeGroup.GetId() == group).To(Equal(listed[node.Spec.ProviderID]), "Node %s is in %q", node.Name, response.NodeGroup.GetId())
	}
}

// stateOf is the state of an instance that is not deleted.
func stateOf(id string) pb.InstanceStatus_InstanceState {
	if strings.HasPrefix(id, plan.Placeholder) {
		return pb.InstanceStatus_instanceCreating
	}
	return pb.InstanceStatus_instanceRunning
}

// useful judges a template: it must be a Node that pods can run on.
func (r *reader) useful(answer *pb.NodeGroupTemplateNodeInfoResponse) {
	GinkgoHelper()
	var node corev1.Node
	Expect(node.Unmarshal(answer.NodeBytes)).To(Succeed())
	for _, label := range []string{corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelHostname} {
		Expect(node.Labels[label]).NotTo(BeEmpty(), "pods select by %s", label)
	}
	for _, name := range []corev1.ResourceName{"cpu", "memory", "pods"} {
		Expect(node.Status.Allocatable.Name(name, "").Sign()).To(Equal(1), "pods take %s", name)
	}
	Expect(node.Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionTrue))))
	Expect(node.Spec.Taints).To(BeEmpty())
}

// settled reports whether a group has as many machines as the caller counts.
func (r *reader) settled(group string) bool {
	GinkgoHelper()
	response, err := r.wire.server.NodeGroupNodes(context.Background(), &pb.NodeGroupNodesRequest{Id: group})
	Expect(err).NotTo(HaveOccurred())
	stay := 0
	for _, i := range response.Instances {
		if i.Status.InstanceState != pb.InstanceStatus_instanceDeleting {
			stay++
		}
	}
	return stay == int(pool.Requested(r.deployment(group)))
}

// atRest judges the end of a recording: nothing is left to do.
func (r *reader) atRest() {
	GinkgoHelper()
	Expect(r.failed).To(BeEmpty(), "the caller removes each machine whose creation failed")
	for _, d := range world.List[v1alpha1.MachineDeployment](r, deploymentsGVR) {
		Expect(r.settled(d.Name)).To(BeTrue(), d.Name)
		r.polls(d.Name)
	}
}
