// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"
	"errors"
	"fmt"

	"github.com/gardener/machine-controller-manager/pkg/util/nodeops"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

// storedNodes is an informer of what is in a store, which a spec changes.
type storedNodes struct {
	cache.SharedIndexInformer
	store    cache.Indexer
	handlers cache.ResourceEventHandler
	ended    error
}

func (s *storedNodes) GetIndexer() cache.Indexer { return s.store }

func (s *storedNodes) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	s.handlers = h
	return nil, s.ended
}

// remove takes a Node away as a watch does.
func (s *storedNodes) remove(n *corev1.Node) {
	GinkgoHelper()
	Expect(s.store.Delete(n)).To(Succeed())
	s.handlers.OnDelete(cache.DeletedFinalStateUnknown{Key: n.Name, Obj: n})
}

var _ = Describe("Nodes", func() {
	var (
		server *fake.Clientset
		store  cache.Indexer
		client kubernetes.Interface
		fails  error

		informer *storedNodes
		factory  kubeinformers.SharedInformerFactory
	)
	node := func(version, label string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: version, Labels: map[string]string{"from": label}}}
	}
	read := func(ctx context.Context) string {
		GinkgoHelper()
		n, err := client.CoreV1().Nodes().Get(ctx, "n", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		return n.Labels["from"]
	}
	BeforeEach(func() {
		fails = nil
		server = fake.NewClientset()
		server.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, node("9", "server"), nil })
		for _, verb := range []string{"update", "patch"} {
			server.PrependReactor(verb, "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, node("7", "write"), fails })
		}
		store = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		Expect(store.Add(node("5", "store"))).To(Succeed())
		informer = &storedNodes{store: store}
		var err error
		client, factory, err = NodesFromStore(server, informer)
		Expect(err).NotTo(HaveOccurred())
	})

	It("are listed as copies, because machine-controller-manager changes what it is given", func() {
		lister := factory.Core().V1().Nodes().Lister()
		one, err := lister.Get("n")
		Expect(err).NotTo(HaveOccurred())
		one.Labels["from"] = "spoiled"
		all, err := lister.List(labels.Everything())
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(HaveLen(1))
		Expect(all[0].Labels).To(HaveKeyWithValue("from", "store"))
		all[0].Labels["from"] = "spoiled"
		Expect(informer.store.List()).To(ConsistOf(HaveField("Labels", HaveKeyWithValue("from", "store"))))
		_, err = lister.Get("other")
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
		Expect(factory.Core().V1().Nodes().Informer()).To(BeIdenticalTo(informer))
	})

	It("cannot come from an informer that has ended", func() {
		ended := errors.New("informer has ended")
		_, _, err := NodesFromStore(server, &storedNodes{store: store, ended: ended})
		Expect(err).To(MatchError(ended))
		Expect(err).To(MatchError(ContainSubstring("follow nodes: ")))
	})

	It("come from the store, as copies", func(ctx SpecContext) {
		Expect(read(ctx)).To(Equal("store"))
		n, err := client.CoreV1().Nodes().Get(ctx, "n", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		n.Labels["from"] = "caller"
		Expect(read(ctx)).To(Equal("store"))
		Expect(server.Actions()).To(BeEmpty())
	})

	It("come from the server where the store has none", func(ctx SpecContext) {
		Expect(store.Delete(node("5", "store"))).To(Succeed())
		Expect(read(ctx)).To(Equal("server"))
	})

	It("come from the server where the store has just lost one that was written", func(ctx SpecContext) {
		_, err := client.CoreV1().Nodes().Update(ctx, node("5", ""), metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(store.Delete(node("5", "store"))).To(Succeed(), "before handlers are told")
		Expect(read(ctx)).To(Equal("server"))
	})

	DescribeTable("come from the server until the store shows what was written", func(ctx SpecContext, write func(context.Context) (*corev1.Node, error)) {
		after, err := write(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(after.Labels).To(HaveKeyWithValue("from", "write"))
		Expect(read(ctx)).To(Equal("server"))
		Expect(store.Update(node("6", "store"))).To(Succeed())
		Expect(read(ctx)).To(Equal("server"))
		Expect(store.Update(node("7", "store"))).To(Succeed())
		Expect(read(ctx)).To(Equal("store"))
		Expect(client.(nodesFromStore).nodes.pending).To(BeEmpty(), "nothing is remembered of a write that the store shows")
	},
		Entry("by an update", func(ctx context.Context) (*corev1.Node, error) {
			return client.CoreV1().Nodes().Update(ctx, node("5", ""), metav1.UpdateOptions{})
		}),
		Entry("by a patch", func(ctx context.Context) (*corev1.Node, error) {
			return client.CoreV1().Nodes().Patch(ctx, "n", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
		}),
	)

	DescribeTable("come from the server once after a write that failed", func(ctx SpecContext, failure error) {
		fails = failure
		_, err := client.CoreV1().Nodes().Update(ctx, node("5", ""), metav1.UpdateOptions{})
		Expect(err).To(MatchError(failure))
		Expect(read(ctx)).To(Equal("server"))
		Expect(read(ctx)).To(Equal("store"))
	},
		Entry("for a newer version", apierrors.NewConflict(corev1.Resource("nodes"), "n", errors.New("newer"))),
		Entry("for an unknown reason", errors.New("connection lost")),
	)

	Describe("when the store shows an old version of the Node", func() {
		var live *corev1.Node
		BeforeEach(func() {
			live = node("9", "store")
			server.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, live, nil })
			server.PrependReactor("update", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
				written := a.(clienttesting.UpdateAction).GetObject().(*corev1.Node)
				if written.ResourceVersion != live.ResourceVersion {
					return true, nil, apierrors.NewConflict(corev1.Resource("nodes"), "n", errors.New("newer"))
				}
				live = written.DeepCopy()
				live.ResourceVersion = "10"
				return true, live, nil
			})
		})
		prefer := &corev1.Taint{Key: "rollout", Effect: corev1.TaintEffectPreferNoSchedule}

		It("get a taint that machine-controller-manager adds once, if only their status has changed since", func(ctx SpecContext) {
			live.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
			Expect(nodeops.AddOrUpdateTaintOnNode(ctx, client, "n", prefer)).To(Succeed(), "an error is logged, and the taint is never added")
			Expect(live.Spec.Taints).To(HaveExactElements(*prefer))
			Expect(read(ctx)).To(Equal("store"), "from the server")
			Expect(client.(nodesFromStore).nodes.pending).To(HaveKeyWithValue("n", pendingWrite{version: "10"}))
		})

		It("get that taint also if the store shows the status before the write is answered", func(ctx SpecContext) {
			live.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
			server.PrependReactor("update", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return false, nil, store.Update(live.DeepCopy())
			})
			Expect(nodeops.AddOrUpdateTaintOnNode(ctx, client, "n", prefer)).To(Succeed())
			Expect(live.Spec.Taints).To(HaveExactElements(*prefer))
		})

		DescribeTable("are not written over what has changed since", func(ctx SpecContext, change func(*corev1.Node)) {
			change(live)
			before := live.DeepCopy()
			Expect(nodeops.AddOrUpdateTaintOnNode(ctx, client, "n", prefer)).NotTo(Succeed())
			Expect(live).To(Equal(before))
		},
			Entry("a taint", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}} }),
			Entry("a label", func(n *corev1.Node) { n.Labels["a"] = "b" }),
			Entry("an annotation", func(n *corev1.Node) { n.Annotations = map[string]string{"a": "b"} }),
			Entry("a finalizer", func(n *corev1.Node) { n.Finalizers = []string{"example.org/a"} }),
			Entry("the Node itself", func(n *corev1.Node) { n.UID = "another" }),
		)

		DescribeTable("are written as before where that may depend on their status", func(ctx SpecContext, change func(*corev1.Node)) {
			before := live.DeepCopy()
			n, err := client.CoreV1().Nodes().Get(ctx, "n", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			n.Spec.Taints = []corev1.Taint{*prefer}
			change(n)
			_, err = client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
			Expect(apierrors.IsConflict(err)).To(BeTrue())
			Expect(live).To(Equal(before))
		},
			Entry("an end of an in-place update", func(n *corev1.Node) { n.Labels["a"] = "b" }),
			Entry("a Node that accepts pods again", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		)

		It("are not written over what the store has shown since they were read", func(ctx SpecContext) {
			n, err := client.CoreV1().Nodes().Get(ctx, "n", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			n.Spec.Taints = []corev1.Taint{*prefer}
			live.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
			Expect(store.Update(live.DeepCopy())).To(Succeed())
			live.ResourceVersion = "11"
			_, err = client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
			Expect(apierrors.IsConflict(err)).To(BeTrue())
		})
	})

	It("that were written and are in doubt come from the server until the store shows what was written", func(ctx SpecContext) {
		_, err := client.CoreV1().Nodes().Update(ctx, node("5", ""), metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		fails = errors.New("connection lost")
		_, err = client.CoreV1().Nodes().Update(ctx, node("5", ""), metav1.UpdateOptions{})
		Expect(err).To(MatchError(fails))
		for range 2 {
			Expect(read(ctx)).To(Equal("server"))
		}
		Expect(store.Update(node("7", "store"))).To(Succeed())
		Expect(read(ctx)).To(Equal("store"))
	})

	It("that come and go leave nothing behind, however their last write ended", Label("soak"), func(ctx SpecContext) {
		memory := client.(nodesFromStore).nodes
		ends := []error{nil, errors.New("connection lost"), apierrors.NewConflict(corev1.Resource("nodes"), "n", errors.New("newer")), apierrors.NewNotFound(corev1.Resource("nodes"), "n")}
		for i := range 10_000 {
			n := node("5", "store")
			n.Name = fmt.Sprintf("node-%d", i)
			Expect(store.Add(n)).To(Succeed())
			fails = ends[i%len(ends)]
			_, _ = client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
			late := i%3 == 0 // the last write is answered after the Node is gone
			informer.remove(n)
			if late {
				_, _ = client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
			}
		}
		Expect(memory.pending).To(BeEmpty())
	})

	It("that are gone are not waited for", func(ctx SpecContext) {
		_, err := client.CoreV1().Nodes().Update(ctx, node("5", ""), metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		fails = apierrors.NewNotFound(corev1.Resource("nodes"), "n")
		_, err = client.CoreV1().Nodes().Update(ctx, node("5", ""), metav1.UpdateOptions{})
		Expect(err).To(MatchError(fails))
		Expect(read(ctx)).To(Equal("store"))
	})
})
