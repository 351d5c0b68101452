// SPDX-License-Identifier: Apache-2.0

// Package plan decides which pods pull images on machines in reserve. It is pure.
package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/requeue"
)

// Wish is a set of images that pods of one namespace use. One pod pulls all of them.
type Wish struct {
	Namespace string
	// Images and Secrets are sorted.
	Images, Secrets []string
	// Account is the service account whose Secrets are used, too; empty for the default one.
	Account string
	// Key identifies the wish. It is the value of a label.
	Key string
	// Offered reports whether a user of a namespace asks, and not who looks after the machines: then it may fail
	// without a word about the machine, and takes nothing from the others.
	Offered bool
}

// NewWish returns the wish for images that are pulled with Secrets, and with those of a service account.
func NewWish(namespace string, images, secrets []string, account string) Wish {
	w := Wish{Namespace: namespace, Images: distinct(images), Secrets: distinct(secrets), Account: account}
	sum := sha256.Sum256(fmt.Append(nil, w.Namespace, w.Images, w.Secrets, w.Account))
	w.Key = hex.EncodeToString(sum[:8])
	return w
}

// distinct returns words sorted, each once.
func distinct(words []string) []string {
	words = slices.Clone(words)
	slices.Sort(words)
	return slices.Compact(words)
}

// registries returns the hosts of the images, each once.
func (w Wish) registries() (hosts []string) {
	for _, image := range w.Images {
		host, _, found := strings.Cut(image, "/")
		if !found || !strings.ContainsAny(host, ".:") && host != "localhost" {
			host = "docker.io"
		}
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// Pod pulls the images of a wish on a machine.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	// Wish is the key of its wish.
	Wish    string
	Created time.Time
	// Done reports whether all images are there, and Failure why one cannot be pulled now.
	Done    bool
	Failure *Failure
	// Over reports whether it has ended, so that nothing keeps the images: it was evicted, for example. Then there
	// is a failure.
	Over     bool
	Deleting bool
	// Sizes are the bytes of its images, by reference, as far as they are known.
	Sizes map[string]int64
	// Measuring reports whether more of them will be known soon.
	Measuring bool
}

// Failure is why images are not there.
type Failure struct {
	Reason  FailureReason
	Message string
}

// FailureReason is a word for a kind of failures.
type FailureReason string

// Reasons of failures.
const (
	ImageNotFound FailureReason = "ImageNotFound"
	NoAccess      FailureReason = "NoAccess"
	NoSpace       FailureReason = "NoSpace"
	TooSlow       FailureReason = "TooSlow"
	PullFailed    FailureReason = "PullFailed"
	Refused       FailureReason = "Refused"
	// WorkloadNotFound and Invalid mean that it is not known what to pull.
	WorkloadNotFound FailureReason = "WorkloadNotFound"
	Invalid          FailureReason = "Invalid"
	LimitReached     FailureReason = "LimitReached"
)

// Machine is one of a pool.
type Machine struct {
	UID     types.UID
	Created time.Time
	Node    string
	NodeUID types.UID
	// Held reports whether it is in reserve and stays there, and Able whether pods can run on its Node now.
	Held, Able bool
	Pods       []Pod
	// Refused are wishes for which no pod could be created a moment ago, by key.
	Refused map[string]Failure

	// byWish are the pods that are not being deleted, by namespace and wish.
	byWish map[[2]string]*Pod
}

// Pool is a MachineDeployment.
type Pool struct {
	Namespace, Name string
	Wishes          []Wish
	// Failure is why wishes are not known, if that is so. Those that are known count.
	Failure *Failure
	// Unread reports whether more wishes may become known, because not all that asks has been read since the
	// process began: pods of machines in reserve stay, as they may be for these.
	Unread   bool
	Machines []Machine
}

// Add adds a wish that the pool does not have yet. What is asked for is not only offered.
func (one *Pool) Add(w Wish, offered bool) {
	w.Offered = offered
	switch i := slices.IndexFunc(one.Wishes, func(other Wish) bool { return other.Key == w.Key }); {
	case i < 0:
		one.Wishes = append(one.Wishes, w)
	case !offered:
		one.Wishes[i].Offered = false
	}
}

// Limits of what is pulled.
type Limits struct {
	// PerPool and PerRegistry are how many pods may pull at once for a pool, and from a registry.
	PerPool, PerRegistry int
	// Bytes is how large the images on a machine may become; 0 means without a limit.
	Bytes int64
	// Patience is how long pulling may take until the status says that it is too slow.
	Patience time.Duration
}

// Creation creates a pod.
type Creation struct {
	Machine *Machine
	Wish    Wish
}

// Progress is how far the preparation of a machine is.
type Progress struct {
	// Wishes is how many it has, and Done how many of them are fulfilled.
	Wishes, Done int
	// Failure is the first one, if any.
	Failure *Failure
}

// Prepared reports whether nothing is missing.
func (p Progress) Prepared() bool { return p.Done == p.Wishes && p.Failure == nil }

// Plan is what to do, and how far machines are.
type Plan struct {
	Creations []Creation
	Deletions []Pod
	Progress  map[types.UID]Progress
	Again     time.Duration
}

const (
	// retryEnded is after how long a pod that has ended is replaced.
	retryEnded = 5 * time.Minute
	// MaxWishes is how many wishes a machine has: each is a pod, and a Node runs 110 of them.
	MaxWishes = 20
)

// pullCounts are the numbers of pods that pull for wishes of one kind: of a pool, and by registry of all pools.
type pullCounts struct {
	pool     int
	registry map[string]int
}

func (n *pullCounts) count(w Wish) {
	n.pool++
	for _, host := range w.registries() {
		n.registry[host]++
	}
}

// New makes a plan.
func New(now time.Time, pools []Pool, l Limits) Plan {
	p := Plan{Progress: map[types.UID]Progress{}}
	under := map[bool]*pullCounts{false: {registry: map[string]int{}}, true: {registry: map[string]int{}}}
	for i := range pools {
		pools[i].limitWishes()
		for j := range pools[i].Machines {
			m := &pools[i].Machines[j]
			m.indexPods()
			for _, w := range m.pulling(pools[i].Wishes) {
				under[w.Offered].count(w)
			}
		}
	}
	for i := range pools {
		p.forPool(now, &pools[i], l, under)
	}
	return p
}

// limitWishes leaves as many wishes as a machine may have, and those that are offered last.
func (one *Pool) limitWishes() {
	one.Wishes = slices.Clone(one.Wishes)
	slices.SortStableFunc(one.Wishes, func(a, b Wish) int {
		switch {
		case a.Offered == b.Offered:
			return 0
		case b.Offered:
			return -1
		}
		return 1
	})
	if len(one.Wishes) <= MaxWishes {
		return
	}
	if !one.Wishes[MaxWishes].Offered && one.Failure == nil {
		one.Failure = &Failure{LimitReached, fmt.Sprintf("a machine is prepared with at most %d sets of images: request fewer", MaxWishes)}
	}
	one.Wishes = one.Wishes[:MaxWishes]
}

// forPool decides about the machines of a pool, the oldest ones first: they have been ready for longest.
func (p *Plan) forPool(now time.Time, one *Pool, l Limits, under map[bool]*pullCounts) {
	slices.SortStableFunc(one.Machines, func(a, b Machine) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID)) })
	under[false].pool, under[true].pool = 0, 0
	for i := range one.Machines {
		m := &one.Machines[i]
		p.dropPods(now, one, m)
		for _, w := range m.pulling(one.Wishes) {
			under[w.Offered].pool++
		}
	}
	for i := range one.Machines {
		if m := &one.Machines[i]; m.Held && (len(one.Wishes) > 0 || one.Failure != nil) {
			p.Progress[m.UID] = p.forMachine(now, one, m, l, under)
		}
	}
}

// forMachine decides about a machine in reserve, and returns how far it is.
func (p *Plan) forMachine(now time.Time, one *Pool, m *Machine, l Limits, under map[bool]*pullCounts) Progress {
	progress := Progress{Failure: one.Failure}
	busy := map[bool]bool{}
	for _, w := range m.pulling(one.Wishes) {
		busy[w.Offered] = true
	}
	bytes := map[bool]int64{false: m.imageBytes(one.Wishes, false), true: m.imageBytes(one.Wishes, true)}
	for _, w := range one.Wishes {
		pod := m.podFor(w)
		failure, refused := m.Refused[w.Key]
		done, missing := false, (*Failure)(nil)
		switch {
		case pod != nil && pod.Done:
			done = true
		case pod != nil:
			missing = p.failureOf(now, pod, l)
		case refused:
			missing = &failure
		case l.Bytes > 0 && bytes[w.Offered] >= l.Bytes:
			missing = &Failure{LimitReached, fmt.Sprintf("the images on a machine already have %d bytes, and --preparation-bytes is %d: request fewer images, or raise it", bytes[w.Offered], l.Bytes)}
		case m.Able && !busy[w.Offered] && !(w.Offered && busy[false]) && (l.Bytes == 0 || !m.measuring(one.Wishes, w.Offered)) && l.allows(under[w.Offered], w):
			p.Creations = append(p.Creations, Creation{m, w})
			under[w.Offered].count(w)
			busy[w.Offered] = true
			if l.Bytes > 0 && bytes[true] >= l.Bytes {
				p.makeRoom(one, m)
			}
		}
		if w.Offered {
			continue
		}
		progress.Wishes++
		if done {
			progress.Done++
		}
		progress.note(missing)
	}
	return progress
}

// makeRoom deletes pods for what is offered, so that the kubelet may remove these images.
func (p *Plan) makeRoom(one *Pool, m *Machine) {
	for _, w := range one.Wishes {
		if pod := m.podFor(w); pod != nil && w.Offered {
			p.Deletions = append(p.Deletions, *pod)
		}
	}
}

func (l Limits) allows(under *pullCounts, w Wish) bool {
	return under.pool < l.PerPool && !slices.ContainsFunc(w.registries(), func(host string) bool { return under.registry[host] >= l.PerRegistry })
}

func (p *Progress) note(f *Failure) {
	if p.Failure == nil {
		p.Failure = f
	}
}

// dropPods deletes pods that nobody asks for any more, all of a machine that leaves the reserve, and those
// that have ended for a while.
func (p *Plan) dropPods(now time.Time, one *Pool, m *Machine) {
	seen := map[string]bool{}
	for _, pod := range m.Pods {
		if pod.Deleting {
			continue
		}
		asked := one.Unread || slices.ContainsFunc(one.Wishes, func(w Wish) bool { return w.Key == pod.Wish && w.Namespace == pod.Namespace })
		wanted := m.Held && !seen[pod.Wish] && asked
		if pod.Over {
			left := retryEnded - now.Sub(pod.Created)
			p.Again = requeue.Sooner(p.Again, max(left, 0))
			wanted = wanted && left > 0
		}
		if wanted {
			seen[pod.Wish] = true
		} else {
			p.Deletions = append(p.Deletions, pod)
		}
	}
}

// failureOf returns why a pod is not done, if it takes longer than it should, or cannot be.
func (p *Plan) failureOf(now time.Time, pod *Pod, l Limits) *Failure {
	if pod.Failure != nil {
		return pod.Failure
	}
	left := l.Patience - now.Sub(pod.Created)
	if left <= 0 {
		return &Failure{TooSlow, fmt.Sprintf("pod %s/%s has been pulling images for more than %v", pod.Namespace, pod.Name, l.Patience)}
	}
	p.Again = requeue.Sooner(p.Again, left)
	return nil
}

func (m *Machine) indexPods() {
	m.byWish = map[[2]string]*Pod{}
	for i := len(m.Pods) - 1; i >= 0; i-- { // the first of several counts
		if pod := &m.Pods[i]; !pod.Deleting {
			m.byWish[[2]string{pod.Namespace, pod.Wish}] = pod
		}
	}
}

// podFor returns the pod for a wish; nil if there is none, or only one that is being deleted.
func (m *Machine) podFor(w Wish) *Pod { return m.byWish[[2]string{w.Namespace, w.Key}] }

// pulling returns the wishes for which a pod of a machine pulls images.
func (m *Machine) pulling(wishes []Wish) (all []Wish) {
	for _, w := range wishes {
		if pod := m.podFor(w); pod != nil && pod.pulls() {
			all = append(all, w)
		}
	}
	return all
}

// pulls reports whether a pod is pulling: one that has failed waits for longer and longer.
func (p *Pod) pulls() bool { return !p.Done && p.Failure == nil }

// measuring reports whether more of the images of a machine will be known soon, with those that are offered or without.
func (m *Machine) measuring(wishes []Wish, offered bool) bool {
	return slices.ContainsFunc(wishes, func(w Wish) bool {
		pod := m.podFor(w)
		return pod != nil && pod.Measuring && (offered || !w.Offered)
	})
}

// imageBytes is the size of the images of a machine, with those that are offered or without. Pods can share images.
func (m *Machine) imageBytes(wishes []Wish, offered bool) (sum int64) {
	all := map[string]int64{}
	for _, w := range wishes {
		if pod := m.podFor(w); pod != nil && (offered || !w.Offered) {
			maps.Copy(all, pod.Sizes)
		}
	}
	for _, size := range all {
		sum += size
	}
	return sum
}
