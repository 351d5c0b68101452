// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/evenkeel/evenkeel/internal/plural"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// waitingPods returns how many there are, -1 if that is unknown.
func (r *reading) waitingPods() int {
	if r.PodsUnknown {
		return -1
	}
	return len(r.waiting)
}

// isUnschedulable reports whether the scheduler found no node for a pod, and the pod is not about
// to get one.
func isUnschedulable(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil || p.Status.NominatedNodeName != "" {
		return false
	}
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// sample is a machine in reserve that is ready, and that all pods may use, for all of its zone.
type sample struct {
	node *corev1.Node
	zone Zone
	// deployment is its MachineDeployment, namespace first.
	namespace, deployment string
}

func (r *reading) sampleOf(s pool.Snapshot, z Zone) {
	for _, m := range s.Machines {
		switch {
		case stateOf(m) != ReserveReady:
		case m.Object.Annotations[v1alpha1.DedicatedAnnotation] != "":
			r.dedicated = true
		case m.Node == nil:
			r.unseen = true
		default:
			r.samples = append(r.samples, sample{m.Node, z, s.Deployment.Namespace, s.Deployment.Name})
			return
		}
	}
}

// mostShapes bounds how many kinds of pods are held against the reserve.
const mostShapes = 64

// inspectWaiting reports whether the reserve could hold the waiting pods, and what that requires.
func (r *reading) inspectWaiting() {
	slices.SortFunc(r.samples, func(a, b sample) int {
		return slices.Compare([]string{a.namespace, a.deployment}, []string{b.namespace, b.deployment})
	})
	verdicts := map[string]outlook{}
	helpless, held := []*corev1.Pod{}, map[string][]*corev1.Pod{}
	obstacle := fit.Fits
	for _, p := range r.waiting {
		o := r.outlook(p, verdicts)
		switch {
		case o.at != "":
			held[o.at] = append(held[o.at], p)
		default:
			if len(helpless) == 0 || unknown(o.obstacle) {
				obstacle = o.obstacle
			}
			helpless = append(helpless, p)
		}
	}
	if len(helpless) > 0 {
		first := helpless[0]
		r.addProblem(broken, objectRef("pod", first.Namespace, first.Name), r.helplessness(len(helpless), obstacle),
			fmt.Sprintf("kubectl -n %s describe pod %s", first.Namespace, first.Name))
	}
	for _, s := range r.samples {
		if pods := held[s.namespace+"/"+s.deployment]; len(pods) > 0 {
			r.noteHeld(s, pods)
		}
	}
}

// unknown reports whether it is not known what keeps a pod from the reserve.
func unknown(o fit.Obstacle) bool { return o == fit.Fits || o == fit.Undecided }

// outlook is what the reserve is to a pod: the MachineDeployment that could hold it, or the first
// obstacle.
type outlook struct {
	at       string
	obstacle fit.Obstacle
}

func (r *reading) outlook(p *corev1.Pod, known map[string]outlook) outlook {
	pod := fit.NewPod(p, nil)
	shape := pod.Shape()
	o, there := known[shape]
	if there || len(known) >= mostShapes {
		return o
	}
	for _, s := range r.samples {
		obstacle := fit.On(pod, s.node, v1alpha1.ReserveTaintKey)
		if obstacle == fit.Fits {
			o = outlook{at: s.namespace + "/" + s.deployment}
			break
		}
		if o.obstacle == fit.Fits {
			o.obstacle = obstacle
		}
	}
	known[shape] = o
	return o
}

func (r *reading) helplessness(pods int, obstacle fit.Obstacle) string {
	what := plural.Of(pods, "pod") + " cannot be scheduled, and "
	doubt := what + "it is unknown whether the reserve has room for them"
	switch {
	case r.MachinesUnknown:
		return doubt
	case len(r.samples) == 0 && !r.unseen && r.dedicated:
		return what + "all ready reserve machines are dedicated to other pods"
	case len(r.samples) == 0 && !r.unseen:
		return what + "no reserve machine is ready"
	case unknown(obstacle):
		return doubt
	}
	return what + fmt.Sprintf("no reserve machine has room for them (%s)", obstacle)
}

// noteHeld adds why reserve machines are kept from pods that would fit.
func (r *reading) noteHeld(s sample, pods []*corev1.Pod) {
	object := objectRef("machinedeployment", s.namespace, s.deployment)
	what := fmt.Sprintf("%s cannot be scheduled, and a reserve machine here has room for them", plural.Of(len(pods), "pod"))
	switch b := s.zone.Bounds; {
	case b == nil:
		r.addProblem(broken, object, what, fmt.Sprintf("kubectl -n %s scale machinedeployment %s --replicas=%d, or set the annotation bounds so that the controller does this",
			s.namespace, s.deployment, s.zone.Replicas+s.zone.Counted+1))
	case s.zone.Replicas >= b.Max:
		r.addProblem(broken, object, fmt.Sprintf("%s, but replicas are at max %d", what, b.Max), "raise max in the bounds")
	default:
		r.addProblem(noted, object, what, "wait: the machine is released soon; if not, check that machine-controller-manager runs with --controllers=*, or with release among them")
	}
}
