// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/hash"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"
)

// Annotations of MachineSets. Those of the sizes tell machine-controller-manager which number of
// replicas it has acted on, if it takes over.
const (
	revisionAnnotation        = "deployment.kubernetes.io/revision"
	revisionHistoryAnnotation = "deployment.kubernetes.io/revision-history"
	desiredAnnotation         = "deployment.kubernetes.io/desired-replicas"
	maxAnnotation             = "deployment.kubernetes.io/max-replicas"
	// PreferNoSchedule is the key of the taint of old Nodes, and of the annotation of their MachineSet.
	PreferNoSchedule = "deployment.machine.sapcloud.io/prefer-no-schedule"
	// Unfreeze is the annotation by which people end that an object is frozen.
	Unfreeze = "safety.machine.sapcloud.io/unfreeze"

	// evenkeel is what the keys of annotations begin with that are about the reserve or zones.
	evenkeel = "evenkeel.machine.sapcloud.io/"

	hashLabel = mcm.DefaultMachineDeploymentUniqueLabelKey
)

// ownAnnotations belong to one object: MachineSets do not take them from their MachineDeployment, nor
// the other way round.
var ownAnnotations = []string{
	corev1.LastAppliedConfigAnnotation, revisionAnnotation, revisionHistoryAnnotation, desiredAnnotation, maxAnnotation,
	PreferNoSchedule, Unfreeze, machineutils.TriggerDeletionByMCM,
}

// split returns the oldest MachineSet that has the template of the MachineDeployment, nil if none
// has, and the others.
func (d *deployment) split(all []*set) (newest *set, old []*set) {
	all = slices.SortedFunc(slices.Values(all), func(a, b *set) int { return byAge(a.stored, b.stored) })
	for _, s := range all {
		if newest == nil && sameMachines(s.stored.Spec.Template, d.stored.Spec.Template) {
			newest = s
		} else {
			old = append(old, s)
		}
	}
	return newest, old
}

// sameMachines reports whether the machines of two templates need not be replaced by each other. What
// machines take from their template while they exist does not count, nor does the hash.
func sameMachines(a, b mcm.MachineTemplateSpec) bool {
	return equality.Semantic.DeepEqual(lasting(a), lasting(b))
}

func lasting(t mcm.MachineTemplateSpec) mcm.MachineTemplateSpec {
	t.Labels = without(t.Labels, hashLabel)
	t.Spec.NodeTemplateSpec, t.Spec.MachineConfiguration, t.Spec.Class.Kind = mcm.NodeTemplateSpec{}, nil, ""
	return t
}

// without returns a copy of a map without a key.
func without(labels map[string]string, key string) map[string]string {
	labels = maps.Clone(labels)
	delete(labels, key)
	return labels
}

// with returns a copy of a map with a key.
func with(labels map[string]string, key, value string) map[string]string {
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	return labels
}

// hashOf returns the hash of a template as machine-controller-manager computes it, so that both name a
// MachineSet the same.
func hashOf(t mcm.MachineTemplateSpec, collisions *int32) string {
	hasher := fnv.New32a()
	hash.DeepHashObject(hasher, t)
	if collisions != nil {
		count := make([]byte, 8)
		binary.LittleEndian.PutUint32(count, uint32(*collisions))
		_, _ = hasher.Write(count) // a hash never fails
	}
	return strconv.FormatUint(uint64(hasher.Sum32()), 10)
}

// IsNewSet reports whether a MachineSet is the one that a plan wants to create, which another plan has
// created, or which the MachineDeployment is about to adopt.
func (v View) IsNewSet(s *mcm.MachineSet) bool {
	selector, _ := validateDeployment(v.Deployment)
	ref := metav1.GetControllerOfNoCopy(s)
	mine := ref != nil && ref.UID == v.Deployment.UID || ref == nil && s.DeletionTimestamp == nil
	return mine && selector.Matches(labels.Set(s.Labels)) && sameMachines(s.Spec.Template, v.Deployment.Spec.Template)
}

// newSet returns the MachineSet for the template of the MachineDeployment.
func (d *deployment) newSet() *mcm.MachineSet {
	const nameSuffix = 5
	spec := d.stored.Spec.DeepCopy()
	sum := hashOf(spec.Template, d.stored.Status.CollisionCount)
	name := rand.SafeEncodeString(sum)
	s := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: d.stored.Namespace, Name: d.stored.Name + "-" + name[:min(len(name), nameSuffix)],
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d.stored, mcm.SchemeGroupVersion.WithKind("MachineDeployment"))},
		Labels:          with(spec.Template.Labels, hashLabel, sum),
		Finalizers:      []string{Finalizer},
	}}
	s.Spec = mcm.MachineSetSpec{
		MinReadySeconds: spec.MinReadySeconds, AutoPreserveFailedMachineMax: spec.AutoPreserveFailedMachineMax,
		Selector: spec.Selector, Template: spec.Template,
	}
	s.Spec.Template.Labels = with(s.Spec.Template.Labels, hashLabel, sum)
	s.Spec.Selector.MatchLabels = with(s.Spec.Selector.MatchLabels, hashLabel, sum)
	d.annotateNewest(s)
	d.annotateSize(s)
	return s
}

// syncNewest gives the newest MachineSet what it takes from the MachineDeployment while it exists.
func (d *deployment) syncNewest() {
	if d.newest == nil {
		return
	}
	s, want := d.newest.Object, d.stored.Spec.DeepCopy()
	s.Spec.MinReadySeconds, s.Spec.AutoPreserveFailedMachineMax = want.MinReadySeconds, want.AutoPreserveFailedMachineMax
	s.Spec.Template.Spec.NodeTemplateSpec, s.Spec.Template.Spec.MachineConfiguration = want.Template.Spec.NodeTemplateSpec, want.Template.Spec.MachineConfiguration
	s.Spec.Template.Spec.Class.Kind = want.Template.Spec.Class.Kind
	d.annotateNewest(s)
	d.Object.Annotations = with(d.Object.Annotations, revisionAnnotation, s.Annotations[revisionAnnotation])
}

// annotateNewest gives the newest MachineSet the annotations of the MachineDeployment, and the highest
// revision. The revision that it had is kept as history.
func (d *deployment) annotateNewest(s *mcm.MachineSet) {
	for key, value := range d.Object.Annotations {
		if !slices.Contains(ownAnnotations, key) && !strings.HasPrefix(key, evenkeel) {
			s.Annotations = with(s.Annotations, key, value)
		}
	}
	var last int64
	for _, old := range d.old {
		last = max(last, revisionOf(old.stored))
	}
	was := s.Annotations[revisionAnnotation]
	if revision, err := strconv.ParseInt(was, 10, 64); was != "" && (err != nil || revision > last) {
		return
	}
	s.Annotations = with(s.Annotations, revisionAnnotation, strconv.FormatInt(last+1, 10))
	if was != "" {
		history := strings.FieldsFunc(s.Annotations[revisionHistoryAnnotation], func(r rune) bool { return r == ',' })
		history = append(history, was)
		s.Annotations[revisionHistoryAnnotation] = strings.Join(history[max(0, len(history)-maxHistory):], ",")
	}
}

// maxHistory is how many former revisions a MachineSet shows.
const maxHistory = 20

// revisionOf returns the revision of a MachineSet; 0 if it has none.
func revisionOf(s *mcm.MachineSet) int64 {
	revision, _ := strconv.ParseInt(s.Annotations[revisionAnnotation], 10, 64)
	return revision
}

// addHashes is for MachineSets that the MachineDeployment has adopted, and that lack the label of the
// hash: first their machines get it, and those to come, then their selector.
func (d *deployment) addHashes() {
	for _, s := range d.sets() {
		spec := &s.Object.Spec
		if s.invalid != nil || s.stored.DeletionTimestamp != nil || spec.Selector.MatchLabels[hashLabel] != "" {
			continue
		}
		sum, has := spec.Template.Labels[hashLabel]
		if !has {
			sum = hashOf(spec.Template, d.stored.Status.CollisionCount)
			spec.Template.Labels = with(spec.Template.Labels, hashLabel, sum)
		}
		complete := has
		for i, m := range s.machines {
			if m.Labels[hashLabel] != sum {
				complete = false
				after := m.DeepCopy()
				after.Labels = with(after.Labels, hashLabel, sum)
				s.machines[i] = after
			}
		}
		if complete {
			s.Object.Labels = with(s.Object.Labels, hashLabel, sum)
			spec.Selector.MatchLabels = with(spec.Selector.MatchLabels, hashLabel, sum)
		}
	}
}
