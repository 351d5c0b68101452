// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// prepareImages has the images of a buffer's pods prepared where its chunks are, if it asks for that (law 12).
func (r *round) prepareImages(d *Decision) {
	asked, set := d.Buffer.Annotations[v1beta1.PrepareAnnotation]
	if !set || asked == "false" {
		return
	}
	workload := workloadOf(&d.Buffer.Spec)
	switch {
	case asked != "true":
		d.Unprepared = fmt.Sprintf("annotation prepare: %.80q is invalid: use \"true\" or \"false\"", asked)
		return
	case workload == "":
		d.Unprepared = fmt.Sprintf("the images of kind %s cannot be read", d.Buffer.Spec.ScalableRef.Kind)
		return
	}
	for _, name := range d.Pools {
		all, fits := addPrepared(r.prepare[name], d.Buffer.Namespace, workload)
		if !fits {
			d.Unprepared = fmt.Sprintf("%s has too many other workloads", name)
		}
		r.prepare[name] = all
	}
}

// workloadOf returns the workload of a buffer that can be followed, as Kind/name; empty if it has none.
func workloadOf(s *v1beta1.CapacityBufferSpec) string {
	switch {
	case s.PodTemplateRef != nil:
		return "PodTemplate/" + s.PodTemplateRef.Name
	case s.ScalableRef != nil && Watched(s.ScalableRef):
		return s.ScalableRef.Kind + "/" + s.ScalableRef.Name
	}
	return ""
}

// maxPrepared is how many workloads are prepared in a MachineDeployment: as many as a machine has at most.
const maxPrepared = autoscaling.MaxPreparedImages

// addPrepared adds a workload, and reports whether there was room for it. Each namespace has one entry.
func addPrepared(all []autoscaling.Preparation, namespace, workload string) ([]autoscaling.Preparation, bool) {
	sum, at := 0, -1
	for i, p := range all {
		sum += len(p.Workloads)
		if p.Namespace == namespace {
			at = i
		}
	}
	switch {
	case at >= 0 && slices.Contains(all[at].Workloads, workload):
		return all, true
	case sum >= maxPrepared || at < 0 && len(all) == machine.MaxPreparations:
		return all, false
	case at < 0:
		at, all = len(all), append(all, autoscaling.Preparation{Namespace: namespace})
	}
	all[at].Workloads = append(all[at].Workloads, workload)
	return all, true
}

// mergePrepared adds what a Reserve has prepared until now, as far as there is room.
func mergePrepared(all, before []autoscaling.Preparation) []autoscaling.Preparation {
	for _, p := range before {
		for _, workload := range p.Workloads {
			all, _ = addPrepared(all, p.Namespace, workload)
		}
	}
	return all
}
