// SPDX-License-Identifier: Apache-2.0

package federatedhpa_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/workloads"
	autoscaling "github.com/evenkeel/evenkeel/pkg/client/clientset/workloads/typed/autoscaling/v1alpha1"
	informers "github.com/evenkeel/evenkeel/pkg/client/informers/workloads"
	. "github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
	. "github.com/evenkeel/evenkeel/test/builders/federatedhpa"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var suite *testing.T

func TestFederatedHPA(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "FederatedHPA")
}

const ns = "default"

var (
	objectGVR     = v1alpha1.SchemeGroupVersion.WithResource("federatedhorizontalpodautoscalers")
	hpaGVR        = autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers")
	deploymentGVR = appsv1.SchemeGroupVersion.WithResource("deployments")
	eventGVR      = corev1.SchemeGroupVersion.WithResource("events")
)

// hubServes and memberServes are the kinds of the two sorts of clusters.
var (
	hubServes = slices.Concat(sim.Core, []sim.Resource{
		{Group: v1alpha1.GroupName, Version: "v1alpha1", Name: "federatedhorizontalpodautoscalers", Kind: "FederatedHorizontalPodAutoscaler", Namespaced: true, Status: true, Generation: true},
		{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Name: "clusterprofiles", Kind: "ClusterProfile", Namespaced: true, Status: true, Generation: true},
	})
	memberServes = slices.Concat(sim.Core, sim.Workloads)
)

// applying serves server-side apply on a server that lacks it: an applied object takes the place of all but the status and
// the metadata of the stored one.
type applying struct{ next http.RoundTripper }

func (a applying) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPatch || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") {
		return a.next.RoundTrip(r)
	}
	wanted := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
		return nil, err
	}
	get := r.Clone(r.Context())
	get.Method, get.Body, get.URL.RawQuery = http.MethodGet, nil, ""
	answer, err := a.next.RoundTrip(get)
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	stored := map[string]any{}
	if err := json.NewDecoder(answer.Body).Decode(&stored); err != nil {
		return nil, err
	}
	into, from := stored["metadata"].(map[string]any), wanted["metadata"].(map[string]any)
	for _, name := range []string{"labels", "annotations", "resourceVersion", "uid"} {
		if value, ok := from[name]; ok {
			into[name] = value
		}
	}
	spec, _ := wanted["spec"].(map[string]any)
	if old, ok := stored["spec"].(map[string]any); ok && spec["replicas"] == nil && old["replicas"] != nil {
		spec["replicas"] = old["replicas"]
	}
	stored["spec"] = spec
	body, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	put := r.Clone(r.Context())
	put.Method, put.Body, put.ContentLength, put.URL.RawQuery = http.MethodPut, io.NopCloser(bytes.NewReader(body)), int64(len(body)), ""
	put.Header = r.Header.Clone()
	put.Header.Set("Content-Type", "application/json")
	return a.next.RoundTrip(put)
}

// federation is a hub and its members in virtual time.
type federation struct {
	*storm.World
	user    workloads.Interface
	options Options

	mu       sync.Mutex
	clusters []*cluster
	named    []string // those that the registry names
	changed  []func()
	actors   sync.WaitGroup
	stop     context.CancelFunc
	calls    calls // of the controller to members
	prints   int   // how often the members' access has been replaced
	aliases  map[string]string
	hanging  string // the name under which a member does not answer
	// intercept is called with each request to a member that gets no answer if it returns an error.
	intercept atomic.Pointer[func(*http.Request) error]
	running   *Controller
	// excused is set while a cluster may have more than it was given: what it had at the time of a backup.
	excused atomic.Bool
	// notes are what the message of a broken law shows.
	notes []string
}

// cluster is one member with its own autoscalers and workloads.
type cluster struct {
	*sim.Server
	name string
	core kubernetes.Interface

	mu       sync.Mutex
	load     map[string]int64
	capacity int64
	still    bool        // its own autoscaler has ended
	used     atomic.Bool // the hub has written an autoscaler there
	// forgotten is how many of the replicas that were left there the hub cannot know of, because it was restored.
	forgotten atomic.Int64
}

// newFederation has members with a Deployment shop in each.
func newFederation(seed uint64, names ...string) *federation {
	return adopt(storm.NewWorld(sim.Options{Seed: seed, Resources: hubServes}), names...)
}

func adopt(w *storm.World, names ...string) *federation {
	f := &federation{World: w, user: workloads.NewForConfigOrDie(w.ConfigFor("user"))}
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	for i, name := range names {
		c := &cluster{Server: sim.New(sim.Options{Seed: w.Seed + uint64(i), Resources: memberServes, ManagedFields: true}), name: name, load: map[string]int64{}, capacity: 1000}
		c.core = kubernetes.NewForConfigOrDie(c.ConfigFor("actors"))
		c.deploy("shop")
		f.clusters, f.named = append(f.clusters, c), append(f.named, name)
		w.Others = append(w.Others, c.Server)
		f.actors.Go(func() { c.act(ctx) })
	}
	return f
}

// End ends all that goes on, members last.
func (f *federation) End() {
	f.stop()
	f.actors.Wait()
	f.World.End()
	for _, c := range f.clusters {
		c.Close()
	}
}

// play runs body on a federation in virtual time.
func play(body func(f *federation), names ...string) {
	storm.Bubble(suite, func() {
		f := newFederation(1, names...)
		defer f.End()
		body(f)
	})
}

// Members, Notify, Run and Filled make it the registry.
func (f *federation) Members() []Registration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Registration
	for _, name := range f.named {
		all = append(all, Registration{Name: name, Labels: map[string]string{"name": name}, Config: &rest.Config{}, Print: fmt.Sprint(name, f.prints)})
	}
	return all
}

func (f *federation) Notify(changed func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed = append(f.changed, changed)
}

func (f *federation) Run(ctx context.Context)     { <-ctx.Done() }
func (f *federation) Filled() []cache.DoneChecker { return nil }

// register has the registry name these clusters.
func (f *federation) register(names ...string) {
	f.replace(func() { f.named = names })
}

// rotate gives the controller another access to all members.
func (f *federation) rotate() {
	f.replace(func() { f.prints++ })
}

func (f *federation) replace(change func()) {
	f.mu.Lock()
	change()
	changed := slices.Clone(f.changed)
	f.mu.Unlock()
	for _, tell := range changed {
		tell()
	}
}

// alias is another name of a member.
func (f *federation) alias(name, of string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.aliases == nil {
		f.aliases = map[string]string{}
	}
	f.aliases[name] = of
}

// hang has a member not answer under one of its names.
func (f *federation) hang(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hanging = name
}

// onRequest has something happen before each request to a member, which gets no answer if that is an error.
func (f *federation) onRequest(intercept func(*http.Request) error) { f.intercept.Store(&intercept) }

func (f *federation) hangs(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hanging == name
}

func (f *federation) member(name string) *cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	name = cmp.Or(f.aliases[name], name)
	return f.clusters[slices.IndexFunc(f.clusters, func(c *cluster) bool { return c.name == name })]
}

// controller is the program under test. Once it is killed none of its requests to members has an effect either.
func (f *federation) controller(ctx context.Context, config *rest.Config) error {
	ours := workloads.NewForConfigOrDie(config)
	objects := informers.NewSharedInformerFactory(ours, 0)
	o := f.options
	o.Connect = func(r Registration) (*rest.Config, error) {
		way := &routed{f: f, name: r.Name, process: config, through: map[*sim.Server]*sim.Client{}}
		member := f.member(r.Name).ConfigFor("federatedhpa")
		member.Transport = counting{applying{way}, &f.calls}
		return member, nil
	}
	c, err := New(ours.AutoscalingV1alpha1(), objects.Autoscaling().V1alpha1().FederatedHorizontalPodAutoscalers(), f, &world.Recorder{Core: kubernetes.NewForConfigOrDie(config)}, o)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.running = c
	f.mu.Unlock()
	world.Process{Informers: []world.Informers{world.InformersOf(objects)}}.Run(ctx, c.Run)
	return nil
}

func (f *federation) start() *storm.Process { return f.Start("federatedhpa", f.controller) }

// create makes an object; its status is made by the controller.
func (f *federation) create(o *v1alpha1.FederatedHorizontalPodAutoscaler) {
	GinkgoHelper()
	o.UID, o.Generation = "", 0
	if o.Spec.Metrics == nil {
		withMetric("1")(&o.Spec)
	}
	world.Create(f.objects(), o)
}

func (f *federation) objects() autoscaling.FederatedHorizontalPodAutoscalerInterface {
	return f.user.AutoscalingV1alpha1().FederatedHorizontalPodAutoscalers(ns)
}

func (f *federation) change(name string, change func(*Spec)) {
	GinkgoHelper()
	world.Change(f.objects(), name, func(o *v1alpha1.FederatedHorizontalPodAutoscaler) { change(&o.Spec) })
}

func (f *federation) remove(name string) {
	GinkgoHelper()
	world.Delete(f.objects(), name)
}

func (f *federation) object(name string) *v1alpha1.FederatedHorizontalPodAutoscaler {
	GinkgoHelper()
	return world.Stored[v1alpha1.FederatedHorizontalPodAutoscaler](f, objectGVR, ns, name)
}

// bounds of the members' autoscalers, as in 1..5/-/1..5.
func (f *federation) bounds(name string) string {
	var words []string
	for _, c := range f.clusters {
		words = append(words, c.bounds(name))
	}
	return strings.Join(words, "/")
}

func (f *federation) maxima(name string) string {
	var words []string
	for _, c := range f.clusters {
		_, hi, _ := strings.Cut(c.bounds(name), "..")
		if hi == "" {
			hi = "-"
		}
		words = append(words, hi)
	}
	return strings.Join(words, "/")
}

func (c *cluster) bounds(name string) string {
	h := c.hpa(name)
	if h == nil {
		return "-"
	}
	return fmt.Sprintf("%d..%d", *h.Spec.MinReplicas, h.Spec.MaxReplicas)
}

func (c *cluster) hpa(name string) *autoscalingv2.HorizontalPodAutoscaler {
	raw := c.Get(hpaGVR, ns, name)
	if raw == nil {
		return nil
	}
	h := &autoscalingv2.HorizontalPodAutoscaler{}
	ExpectWithOffset(1, runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, h)).To(Succeed())
	return h
}

// ledgerEntry is the entry of a cluster in an object's status, nil if there is none.
func (f *federation) ledgerEntry(name, cluster string) *v1alpha1.ClusterStatus {
	clusters := f.object(name).Status.Clusters
	if i := slices.IndexFunc(clusters, func(c v1alpha1.ClusterStatus) bool { return c.Name == cluster }); i >= 0 {
		return &clusters[i]
	}
	return nil
}

// state of a cluster, as in "Used" or "Refused NameTaken".
func (f *federation) state(name, cluster string) string {
	c := f.ledgerEntry(name, cluster)
	if c == nil {
		return "absent"
	}
	return strings.TrimSpace(string(c.State) + " " + c.Reason)
}

// condition of an object, as in "False Moving".
func (f *federation) condition(name, kind string) string {
	for _, c := range f.object(name).Status.Conditions {
		if c.Type == kind {
			return string(c.Status) + " " + c.Reason
		}
	}
	return "absent"
}

// loads are what the members' metrics call for, of the workload of that name.
func (f *federation) loads(name string, n ...int64) {
	for i, load := range n {
		f.clusters[i].set(func(c *cluster) { c.load[name] = load })
	}
}

func (c *cluster) set(change func(*cluster)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

// settle waits until nothing has been written anywhere for a while.
func (f *federation) settle() {
	for range 200 {
		before := f.loud()
		time.Sleep(6 * time.Minute)
		if f.loud() == before {
			return
		}
	}
	ExpectWithOffset(1, false).To(BeTrue(), "it does not come to rest")
}

// loud is how many writes there were in all.
func (f *federation) loud() int {
	n := len(storm.Loud(f.Writes()))
	for _, c := range f.clusters {
		n += len(storm.Loud(c.Writes()))
	}
	return n
}

// ours are the controller's writes since some number of them, in members and in the hub.
func (f *federation) ours() []string {
	var all []string
	for _, w := range storm.Sent(f.Writes()) {
		if w.User == "federatedhpa" {
			all = append(all, "hub "+w.Subresource+" "+w.Name)
		}
	}
	for _, c := range f.clusters {
		for _, w := range storm.Sent(c.Writes()) {
			if w.User == "federatedhpa" {
				all = append(all, c.name+" "+w.Verb+" "+w.Resource)
			}
		}
	}
	return all
}

func (f *federation) events() []string {
	var all []string
	for _, e := range f.Objects(eventGVR) {
		reason, _ := e.Object["reason"].(string)
		all = append(all, reason)
	}
	return all
}

var widgetKind = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
