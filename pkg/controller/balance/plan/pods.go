// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// Bounds of one decision, since users of the target cluster create pods and budgets.
const (
	// maxShapes is how many kinds of waiting pods are considered. If there are more, growth stays
	// where it was requested.
	maxShapes = 500
	// maxCandidates is how many machines are considered for deletion.
	maxCandidates = 100
)

// places determines where pods could run. Rooms are created on first use.
type places struct {
	nodes []fit.Node
	rooms map[string]*fit.Room
}

// roomFor returns the present Nodes and a fresh machine of a member; false if no node template is
// known for it.
func (p *places) roomFor(z *zone) (*fit.Room, bool) {
	if z.Fresh == nil {
		return nil, false
	}
	if room, ok := p.rooms[z.name]; ok {
		return room, true
	}
	room := fit.NewRoom(append(slices.Clone(p.nodes), fit.Node{Object: z.Fresh}))
	if p.rooms == nil {
		p.rooms = map[string]*fit.Room{}
	}
	p.rooms[z.name] = room
	return room, true
}

// obstacleFor returns what prevents a pod from running on a fresh machine of a member.
func (p *places) obstacleFor(pod *fit.Pod, z *zone) fit.Obstacle {
	room, ok := p.roomFor(z)
	if !ok {
		return fit.Undecided
	}
	return room.Ask(pod, z.Fresh.Name)
}

// waitingPodBarred reports whether a waiting pod could run on a fresh machine of one member, but
// not on one of another. The growth may have been requested for this pod. If no such pod waits,
// growth comes before its pods.
func (r *round) waitingPodBarred(from, to *zone) (string, bool) {
	if len(r.shapes) > maxShapes {
		return fmt.Sprintf("more than %d different pods wait, too many to check where each of them could run", maxShapes), true
	}
	awaited := false
	for _, pod := range r.shapes {
		if o := r.places.obstacleFor(pod, from); o != fit.Fits && o != fit.Undecided {
			continue
		}
		awaited = true
		if o := r.places.obstacleFor(pod, to); o != fit.Fits {
			return fmt.Sprintf("waiting pods cannot run in %s: %s", to.name, obstacleText(o)), true
		}
	}
	if awaited {
		return "", false
	}
	return r.allPodsBound(from, to)
}

// allPodsBound reports whether none of the pods on one member's machines could run on a fresh
// machine of another. Pods that growth is meant for and that do not exist yet are most likely
// similar. If a single pod could, growth is split: in nearly every pool, volumes bind some pods to
// their zone.
func (r *round) allPodsBound(from, to *zone) (string, bool) {
	var pods []*fit.Pod
	for _, m := range from.Machines {
		pods = append(pods, m.Workload...)
	}
	shapes := shapesOf(pods)
	for _, pod := range shapes {
		if r.places.obstacleFor(pod, to) == fit.Fits {
			return "", false
		}
	}
	return fmt.Sprintf("none of the pods in %s can run in %s", from.name, to.name), len(shapes) > 0
}

// shapesOf returns one pod of each kind, and not many more than are considered.
func shapesOf(pods []*fit.Pod) []*fit.Pod {
	asked := map[string]bool{}
	var all []*fit.Pod
	for _, pod := range pods {
		if shape := pod.Shape(); !asked[shape] && len(all) <= maxShapes {
			asked[shape] = true
			all = append(all, pod)
		}
	}
	return all
}

func obstacleText(o fit.Obstacle) string {
	if o == fit.Undecided {
		return "it has a requirement that Evenkeel does not know"
	}
	return string(o)
}

// victim chooses the machine of one member to delete, such that its pods can run on a fresh machine
// of another: the one that was promised before, otherwise the emptiest, then the one whose pods
// have run longest, so that no pod moves twice. If there is none, why describes the obstacle.
func (r *round) victim(from, to *zone, promised string) (name, why string) {
	candidates := slices.DeleteFunc(slices.Clone(from.Machines), func(m Machine) bool {
		ranked := pool.Priority(m.Object) != pool.DefaultPriority // with 1, an autoscaler is about to lower replicas for it
		return !m.Ready() || m.Reserve() || m.Leaving() || m.Unseen || m.Preserved || ranked
	})
	slices.SortFunc(candidates, func(a, b Machine) int {
		return cmp.Or(
			compareTrueFirst(a.Object.Name == promised, b.Object.Name == promised),
			cmp.Compare(len(a.Workload), len(b.Workload)),
			a.newestPod().Compare(b.newestPod()),
			a.Object.CreationTimestamp.Compare(b.Object.CreationTimestamp.Time),
			cmp.Compare(a.Object.Name, b.Object.Name),
		)
	})
	for _, m := range candidates[:min(len(candidates), maxCandidates)] {
		obstacle := r.whyNotMovable(m, to)
		if obstacle == "" {
			return m.Object.Name, ""
		}
		why = cmp.Or(why, obstacle)
	}
	return "", cmp.Or(why, "no machine of "+from.name+" can be removed")
}

// compareTrueFirst orders true before false.
func compareTrueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// newestPod returns when the newest pod on the machine was created.
func (m Machine) newestPod() time.Time {
	var at time.Time
	for _, pod := range m.Workload {
		if born := pod.Object.CreationTimestamp.Time; born.After(at) {
			at = born
		}
	}
	return at
}

// whyNotMovable returns why a machine cannot be deleted and its pods run on a fresh machine of
// another member; empty if it can.
func (r *round) whyNotMovable(m Machine, to *zone) string {
	if why := r.whyNotEvictable(m); why != "" || len(m.Workload) == 0 {
		return why
	}
	room, ok := r.places.roomFor(to)
	if !ok {
		return "PodsBound: no node template known for " + to.name
	}
	node := m.Object.Labels[mcm.NodeLabelKey]
	for _, pod := range m.Workload {
		room.Remove(pod, node)
	}
	placed := 0
	defer func() {
		for _, pod := range m.Workload[:placed] {
			room.Remove(pod, to.Fresh.Name)
		}
		for _, pod := range m.Workload {
			room.Put(pod, node)
		}
	}()
	for _, pod := range m.Workload {
		if o := room.Ask(pod, to.Fresh.Name); o != fit.Fits {
			return fmt.Sprintf("PodsBound: pod %s cannot run in %s: %s", pod.Name(), to.name, obstacleText(o))
		}
		room.Put(pod, to.Fresh.Name)
		placed++
	}
	return ""
}

// whyNotEvictable returns why a machine's pods must not be evicted; empty if they may be.
func (r *round) whyNotEvictable(m Machine) string { return r.evictor.WhyNot(objects(m.Workload)...) }

// newEvictor returns an evictor that expects the pods of machines that are about to go.
func newEvictor(v View) *pool.Evictor {
	e := pool.NewEvictor(v.Settings.Eviction, v.Budgets, v.BudgetsUnknown, v.Now)
	for _, member := range v.Members {
		for _, m := range member.Machines {
			if m.Leaving() {
				e.Expect(objects(m.Workload)...)
			}
		}
	}
	return e
}

func objects(pods []*fit.Pod) []*corev1.Pod {
	all := make([]*corev1.Pod, len(pods))
	for i, pod := range pods {
		all[i] = pod.Object
	}
	return all
}

// reasonOf returns the reason at the beginning of a message.
func reasonOf(why string) string {
	reason, _, found := strings.Cut(why, ":")
	if !found {
		return "NoMachineEligible"
	}
	return reason
}
