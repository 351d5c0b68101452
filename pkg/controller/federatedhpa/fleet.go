// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	"github.com/evenkeel/evenkeel/pkg/controller/internal/loop"
)

// fleet contains a member for each registered cluster. It starts a member when the cluster is
// registered, and stops it when the cluster is removed.
type fleet struct {
	registry Registry
	o        *Options
	changed  func(keys ...string)

	mu       sync.Mutex
	ctx      context.Context // nil before startMembers, and after stopMembers
	members  map[string]*member
	faults   map[string]plan.Hold // faults of clusters without a member
	expelled map[string]string    // clusters that exceeded their limits, with the access that they had
	stopping sync.WaitGroup       // members that were stopped and still run
	// leaving counts the members that were stopped and have not released everything yet.
	leaving int
}

// startMembers runs members until ctx ends.
func (f *fleet) startMembers(ctx context.Context) {
	f.mu.Lock()
	f.ctx = ctx
	f.mu.Unlock()
	f.follow()
}

// stopMembers stops all members and waits for them.
func (f *fleet) stopMembers() {
	f.mu.Lock()
	f.ctx = nil
	for name := range f.members {
		f.stopMember(name)
	}
	f.mu.Unlock()
	f.stopping.Wait()
}

// follow starts and stops members so that they match the registry.
func (f *fleet) follow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx == nil {
		return
	}
	registered := f.registry.Members()
	named := map[string]bool{}
	for _, r := range registered {
		named[r.Name] = r.Config != nil
	}
	for name := range f.members {
		if !named[name] {
			f.stopMember(name)
		}
	}
	maps.DeleteFunc(f.expelled, func(name, _ string) bool { return !named[name] })
	f.faults = map[string]plan.Hold{}
	for _, r := range registered {
		if r.Config == nil {
			f.faults[r.Name] = r.Fault
		} else if fault := f.ensureMember(r); fault != (plan.Hold{}) {
			f.faults[r.Name] = fault
		}
	}
}

// ensureMember starts a member, unless it runs with the same access already, and returns why that
// is not possible. The caller holds the lock.
func (f *fleet) ensureMember(r Registration) plan.Hold {
	if m := f.members[r.Name]; m != nil && m.registration.Print == r.Print {
		return plan.Hold{}
	}
	if print, ok := f.expelled[r.Name]; ok && print == r.Print {
		return tooMuchCached
	}
	delete(f.expelled, r.Name)
	f.stopMember(r.Name)
	if len(f.members)+f.leaving >= f.o.MaxClusters {
		return plan.Hold{Reason: "TooManyClusters", Message: fmt.Sprintf("the hub watches at most %d clusters: raise --federation-max-clusters", f.o.MaxClusters)}
	}
	m, err := newMember(r, f)
	if err != nil {
		return plan.Hold{Reason: "KubeconfigInvalid", Message: err.Error()}
	}
	klog.FromContext(f.ctx).Info("Watching a cluster", "cluster", r.Name)
	f.members[r.Name] = m
	m.start(f.ctx)
	return plan.Hold{}
}

// stopMember ends a member. Requests under way continue to count in the ledgers. The caller holds
// the lock.
func (f *fleet) stopMember(name string) {
	m := f.members[name]
	if m == nil {
		return
	}
	delete(f.members, name)
	f.leaving++
	m.stop()
	f.stopping.Add(1)
	go func() {
		m.wait()
		f.stopping.Done()
		m.release()
		f.memberEnded(name)
	}()
}

// memberEnded records that a member has ended, which may make room for another one.
func (f *fleet) memberEnded(name string) {
	f.mu.Lock()
	f.leaving--
	if f.members[name] == nil {
		f.o.metrics.forget(name)
	}
	waited := f.ctx != nil && len(f.faults) > 0
	f.mu.Unlock()
	if waited {
		f.follow()
		f.changed()
	}
}

// replace ends a member, and starts it again if again is set.
func (f *fleet) replace(m *member, again bool) {
	f.mu.Lock()
	if f.members[m.registration.Name] != m {
		f.mu.Unlock()
		return
	}
	f.stopMember(m.registration.Name)
	if !again {
		f.expelled[m.registration.Name] = m.registration.Print
	}
	f.mu.Unlock()
	f.follow()
	f.changed()
}

// memberFor returns a member, or why there is none.
func (f *fleet) memberFor(name string) (*member, plan.Hold) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members[name], f.faults[name]
}

func (f *fleet) allMembers() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*member
	for _, m := range f.members {
		all = append(all, m)
	}
	return all
}

// forgetKind stops the caches of a kind that no object scales any more.
func (f *fleet) forgetKind(gvk schema.GroupVersionKind) {
	for _, m := range f.allMembers() {
		m.kinds.forget(gvk)
	}
}

// member is one cluster: its caches, its orders and its health. It does not wait for other members,
// and no other member waits for it.
type member struct {
	registration Registration
	o            *Options
	changed      func(keys ...string) // without keys, anything may have changed

	client    *http.Client
	dynamic   dynamic.Interface
	discovery discovery.DiscoveryInterface
	loop      *loop.Loop
	hpas      cache.SharedIndexInformer
	kinds     kinds
	health    health
	outbox    outbox
	weight    weight
	reads     reads
	anew      func() // stops this member and starts another one, which reads the cluster again
	restored  func() // the cluster shows an older version than before

	mu     sync.Mutex
	newest string // what its cache has shown, by version
	probed string // the version of the last probe; only the probe loop reads it
	// missed are autoscalers that the cache contains and the cluster does not, by the version at which
	// that was read first; only the probe loop reads it.
	missed map[types.UID]string

	// resumed reports whether a watch of autoscalers has begun since they were last compared.
	resumed atomic.Bool

	cancel  context.CancelFunc
	running sync.WaitGroup
}

// carriers is how many orders are sent to one cluster at the same time.
const carriers = 8

var hpaResource = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

// newMember returns a member. It does nothing before start.
func newMember(r Registration, f *fleet) (*member, error) {
	o := f.o
	config, err := o.Connect(r)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100
	m := &member{registration: r, o: o, changed: f.changed, outbox: outbox{entries: map[string]*outboxEntry{}}}
	m.anew = func() { f.replace(m, true) }
	m.restored = func() {
		klog.Background().Info("A cluster shows older objects than before, as after a restore of its etcd; reading it again", "cluster", r.Name)
		o.metrics.restores.WithLabelValues(r.Name).Inc()
		m.anew()
	}
	m.weight.limit, m.weight.full = o.maxCached, func() { f.replace(m, false) }
	if err := m.connect(config); err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	m.health = health{clock: o.Clock, born: o.Clock.Now(), patience: o.Patience}
	m.loop = loop.New("federatedhpa-"+r.Name, m.sync, loop.Options{Workers: carriers, Clock: o.Clock, Panicked: m.panicked})
	m.hpas = autoscalers(m.dynamic, o.Namespace, func() { m.resumed.Store(true) })
	m.kinds = kinds{member: m, known: map[schema.GroupVersionKind]*kind{}}
	if _, err := m.hpas.AddEventHandler((&part{of: &m.weight}).listen(m.hpaChanged)); err != nil {
		return nil, fmt.Errorf("listen to autoscalers: %w", err)
	}
	err = m.hpas.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if m.health.listFailed(err) {
			m.changed()
		}
	})
	return m, err
}

// connect creates the clients. Discovery takes no context, so its client has a timeout.
func (m *member) connect(config *rest.Config) (err error) {
	if m.client, err = clientFor(config); err != nil {
		return err
	}
	if m.dynamic, err = dynamic.NewForConfigAndClient(config, m.client); err != nil {
		return err
	}
	answering := *m.client
	answering.Timeout = m.o.RequestTimeout
	m.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, &answering)
	return err
}

// start runs the member until stop is called or ctx ends.
func (m *member) start(ctx context.Context) {
	ctx, m.cancel = context.WithCancel(klog.NewContext(ctx, klog.FromContext(ctx).WithValues("cluster", m.registration.Name)))
	m.kinds.ctx = ctx
	m.running.Go(func() { m.hpas.RunWithContext(ctx) })
	m.running.Go(func() { m.loop.Run(ctx) })
	m.running.Go(func() { m.probeLoop(ctx) })
	m.running.Go(func() {
		if cache.WaitFor(ctx, "", m.hpas.HasSyncedChecker()) {
			m.health.listed()
			m.changed()
		}
	})
}

// stop does not wait for the member to end; wait does.
func (m *member) stop() { m.cancel() }

func (m *member) wait() {
	m.running.Wait()
	m.kinds.running.Wait()
}

// release frees what a member that has ended still holds. A program that hangs may delay this
// indefinitely.
func (m *member) release() { release(m.client) }

func (m *member) hpaChanged(items ...any) {
	for _, item := range items {
		if u, ok := unstructuredOf(item); ok {
			m.changed(u.GetNamespace()+"/"+u.GetName(), workloadOfHPA(u))
		}
	}
}

// sync carries out the orders of a key, or discovers a kind.
func (m *member) sync(ctx context.Context, key string) (time.Duration, error) {
	if name, ok := strings.CutPrefix(key, kindPrefix); ok {
		return m.kinds.resolve(ctx, name), nil
	}
	if name, ok := strings.CutPrefix(key, workloadPrefix); ok {
		m.placeOne(ctx, name)
		return 0, nil
	}
	if name, ok := strings.CutPrefix(key, verifyPrefix); ok {
		m.verifyOne(ctx, name)
		return 0, nil
	}
	if name, ok := strings.CutPrefix(key, lookPrefix); ok {
		m.lookOne(ctx, name)
		return 0, nil
	}
	m.carryOut(ctx, key)
	return 0, nil
}

// panicked makes the order in flight count as one whose outcome is unknown.
func (m *member) panicked(key string, _ any) {
	for _, prefix := range []string{workloadPrefix, verifyPrefix, lookPrefix} {
		key = strings.TrimPrefix(key, prefix)
	}
	m.outbox.recordOutcome(key, func(n *outboxEntry) { n.placing = nil })
	m.changed(key)
}

// checkCluster asks the cluster whether it is reachable, and whether it is still what it was.
func (m *member) checkCluster(ctx context.Context) error {
	if _, err := m.discovery.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		return err
	}
	if m.wentBack(ctx) {
		m.restored()
	} else if m.hpas.HasSynced() {
		m.compare(ctx)
	}
	return nil
}

// probeLoop asks the cluster from time to time whether it is reachable.
func (m *member) probeLoop(ctx context.Context) {
	for {
		tried, cancel := context.WithTimeout(ctx, m.o.RequestTimeout)
		err := m.checkCluster(tried)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if m.health.probed(err) {
			klog.FromContext(ctx).V(2).Info("Health of a cluster has changed", "reachable", m.reachable(), "err", err)
			m.changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-m.o.Clock.After(m.o.ProbePeriod):
		}
	}
}

func (m *member) reachable() bool { return m.hpas.HasSynced() && m.health.isTrusted() }

// health contains what is known about whether the cluster answers.
type health struct {
	clock    clock.PassiveClock
	born     time.Time
	patience int

	mu       sync.Mutex
	heard    time.Time
	failures int
	doubted  bool // a write got no answer, and the cluster has not answered since
	trouble  error
}

// probed records the result of a probe, and reports whether the cluster's state has changed.
func (h *health) probed(err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.isReachable()
	first := h.heard.IsZero() && h.failures == 0
	if err == nil {
		h.heard, h.failures, h.doubted = h.clock.Now(), 0, false
	} else {
		h.failures++
	}
	return was != h.isReachable() || first
}

// wasSilent reports whether a request went unanswered since the cluster last answered.
func (h *health) wasSilent() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failures > 0 || h.doubted
}

// silent records that a write got no answer.
func (h *health) silent() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.doubted = true
}

// listFailed records why the caches do not fill, and reports whether the reason is new.
func (h *health) listFailed(err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.trouble
	h.trouble = err
	return was == nil
}

func (h *health) listed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trouble = nil
}

func (h *health) isReachable() bool {
	return !h.heard.IsZero() && h.failures < h.patience && !h.doubted
}

func (h *health) isTrusted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.isReachable()
}

// isYoung reports whether the cluster has been watched for less than it may take to answer.
func (h *health) isYoung() bool { return h.clock.Since(h.born) < plan.Youth }

// isUnprobed reports whether the cluster counts as unreachable only because a write got no answer.
func (h *health) isUnprobed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.doubted && h.failures < h.patience
}

// status returns when the cluster last answered, whether it is too new to decide, and what is wrong
// with it.
func (h *health) status() (heard time.Time, young bool, trouble error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.heard, h.trouble == nil && h.failures == 0 && h.isYoung(), h.trouble
}
