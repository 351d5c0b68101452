// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Lookups find what a pod's volumes and claims refer to. Each function returns nil for an object that
// does not exist.
type Lookups struct {
	Claim  func(namespace, name string) *corev1.PersistentVolumeClaim
	Volume func(name string) *corev1.PersistentVolume
	Class  func(name string) *storagev1.StorageClass
	Driver func(name string) *storagev1.CSIDriver
	// Devices decides about claims to devices. If it is nil, pods with claims are undecided.
	Devices Devices

	// parsed contains what was parsed, by the object that contains it; nil remembers nothing.
	parsed map[any]parsing
}

type parsing struct {
	volumes []volume
	err     error
}

// Remembering returns lookups that parse each object once, for many pods at a time. They must not be
// used concurrently.
func (l *Lookups) Remembering() *Lookups {
	remembering := *l
	remembering.parsed = map[any]parsing{}
	return &remembering
}

// parseOnce returns what parse returns for an object, which it may remember.
func (l *Lookups) parseOnce(object any, parse func() ([]volume, error)) ([]volume, error) {
	known, is := l.parsed[object]
	if !is {
		known.volumes, known.err = parse()
		if l.parsed != nil {
			l.parsed[object] = known
		}
	}
	return known.volumes, known.err
}

// volume limits the nodes that a pod can run on.
type volume struct {
	name string
	// reach is where it can be used; nil means everywhere.
	reach *nodeaffinity.NodeSelector
	// zones are the values that the node's labels may have.
	zones map[string][]string
	// node is the name of the node for which it is being created; empty for other volumes.
	node string
}

const (
	bindCompleted = "pv.kubernetes.io/bind-completed"
	selectedNode  = "volume.kubernetes.io/selected-node"
	noProvisioner = "kubernetes.io/no-provisioner"
)

// zoneLabels are the labels of a volume that tie it to places, by the present name of the node
// label.
var zoneLabels = map[string]string{
	corev1.LabelTopologyZone:            corev1.LabelTopologyZone,
	corev1.LabelTopologyRegion:          corev1.LabelTopologyRegion,
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
}

// VolumeLabels and ClaimAnnotations are what is read of volumes and claims.
func VolumeLabels() []string     { return slices.Sorted(maps.Keys(zoneLabels)) }
func ClaimAnnotations() []string { return []string{bindCompleted, selectedNode} }

// volumesOf returns the volumes that limit where a pod can run. It returns an error if this cannot
// be decided for one of them.
func (l *Lookups) volumesOf(pod *corev1.Pod) ([]volume, error) {
	var all []volume
	for i := range pod.Spec.Volumes {
		source := &pod.Spec.Volumes[i]
		name := ""
		switch {
		case anywhere(source.VolumeSource):
			continue
		case source.PersistentVolumeClaim != nil:
			name = source.PersistentVolumeClaim.ClaimName
		case source.Ephemeral != nil:
			name = pod.Name + "-" + source.Name
		default:
			return nil, fmt.Errorf("its volume %s is of a kind that is not known here", source.Name)
		}
		v, err := l.claimed(pod.Namespace, name)
		if err != nil {
			return nil, fmt.Errorf("its claim %s %w", name, err)
		}
		all = append(all, v...)
	}
	return all, nil
}

// anywhere reports whether every node has the volume, or a driver creates it on any node for the time
// that the pod runs there.
func anywhere(s corev1.VolumeSource) bool {
	return s.EmptyDir != nil || s.ConfigMap != nil || s.Secret != nil || s.Projected != nil || s.DownwardAPI != nil ||
		s.HostPath != nil || s.NFS != nil || s.Image != nil || s.CSI != nil
}

func (l *Lookups) claimed(namespace, name string) ([]volume, error) {
	claim := l.Claim(namespace, name)
	switch {
	case claim == nil:
		return nil, errors.New("does not exist")
	case claim.DeletionTimestamp != nil:
		return nil, errors.New("is being deleted")
	case slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod):
		return nil, errors.New("may be used by one pod alone")
	case claim.Spec.VolumeName == "":
		return l.toBeMade(claim)
	case claim.Annotations[bindCompleted] == "" && claim.Status.Phase != corev1.ClaimBound:
		return nil, errors.New("is being bound")
	}
	return l.existingVolume(claim.Spec.VolumeName)
}

// existingVolume returns the constraints of a volume that exists.
func (l *Lookups) existingVolume(name string) ([]volume, error) {
	pv := l.Volume(name)
	if pv == nil {
		return nil, fmt.Errorf("is bound to %s, which does not exist", name)
	}
	return l.parseOnce(pv, func() ([]volume, error) { return parseVolume(name, pv) })
}

func parseVolume(name string, pv *corev1.PersistentVolume) ([]volume, error) {
	v := volume{name: name, zones: map[string][]string{}}
	if pv.Spec.NodeAffinity != nil && pv.Spec.NodeAffinity.Required != nil {
		var err error
		if v.reach, err = nodeaffinity.NewNodeSelector(pv.Spec.NodeAffinity.Required); err != nil {
			return nil, fmt.Errorf("is bound to %s, whose node affinity is malformed", name)
		}
	}
	for label := range zoneLabels {
		if value, ok := pv.Labels[label]; ok {
			v.zones[label] = strings.Split(value, "__") // more than one if the volume is in several zones
		}
	}
	return []volume{v}, nil
}

// toBeMade returns the constraints of a volume that is created where the pod runs.
func (l *Lookups) toBeMade(claim *corev1.PersistentVolumeClaim) ([]volume, error) {
	if claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName == "" {
		return nil, errors.New("is not bound and has no storage class")
	}
	class := l.Class(*claim.Spec.StorageClassName)
	switch {
	case class == nil:
		return nil, errors.New("is of a storage class that does not exist")
	case class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer:
		return nil, errors.New("is not bound")
	case class.Provisioner == noProvisioner:
		return nil, errors.New("needs one of the volumes that there are")
	case claim.Annotations[selectedNode] != "":
		return []volume{onNode(claim.Annotations[selectedNode])}, nil
	}
	if driver := l.Driver(class.Provisioner); driver != nil && driver.Spec.StorageCapacity != nil && *driver.Spec.StorageCapacity {
		return nil, errors.New("needs room in storage")
	}
	if len(class.AllowedTopologies) == 0 {
		return nil, nil
	}
	return l.parseOnce(class, func() ([]volume, error) { return parseTopologies(class) })
}

func parseTopologies(class *storagev1.StorageClass) ([]volume, error) {
	reach, err := nodeaffinity.NewNodeSelector(topologies(class.AllowedTopologies))
	if err != nil {
		return nil, errors.New("is of a storage class whose topologies are malformed")
	}
	return []volume{{name: "of " + class.Name, reach: reach}}, nil
}

// onNode returns the constraint of a volume that is being created for a node: until it exists, the
// scheduler considers no other node for its pod. The text may be longer than any name of a node.
func onNode(text string) volume {
	node := text[:min(len(text), 254)]
	return volume{name: "on " + node, node: node}
}

func topologies(terms []corev1.TopologySelectorTerm) *corev1.NodeSelector {
	s := &corev1.NodeSelector{}
	for _, t := range terms {
		var term corev1.NodeSelectorTerm
		for _, e := range t.MatchLabelExpressions {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: e.Key, Operator: corev1.NodeSelectorOpIn, Values: e.Values,
			})
		}
		s.NodeSelectorTerms = append(s.NodeSelectorTerms, term)
	}
	return s
}

// reaches reports whether the volume can be used on the node.
func (v volume) reaches(node *corev1.Node) bool {
	if v.node != "" {
		return v.node == node.Name
	}
	if v.reach != nil && !v.reach.Match(node) {
		return false
	}
	if !placed(node) {
		return true // the cluster has no zones
	}
	for label, values := range v.zones {
		value, ok := node.Labels[label]
		if !ok {
			value, ok = node.Labels[zoneLabels[label]]
		}
		if !ok || !slices.Contains(values, value) {
			return false
		}
	}
	return true
}

func placed(node *corev1.Node) bool {
	for label := range zoneLabels {
		if _, ok := node.Labels[label]; ok {
			return true
		}
	}
	return false
}

func volumeNames(volumes []volume) []string {
	all := make([]string, len(volumes))
	for i, v := range volumes {
		all[i] = v.name
	}
	return all
}
