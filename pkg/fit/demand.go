// SPDX-License-Identifier: Apache-2.0

package fit

// Group is a list of reserve machines that are opened in order: the second only after the first.
type Group struct {
	Name string
	// Nodes are the names of closed nodes of the room, in the order in which they are opened.
	Nodes []string
	// Limit is how many of them may be opened.
	Limit int
	// Set is the name of a set of similar groups; empty if the group is similar to no other. Of a set,
	// the group with the smallest Size opens its next machine first. Size is how many machines it has
	// beside these.
	Set  string
	Size int
}

// Place is the place of a pod.
type Place struct {
	Pod  *Pod
	Node string
}

// Demand is what needs a place.
type Demand struct {
	Pods []*Pod
	// Uncreated are pods that will be created.
	Uncreated []Uncreated
	// Interrupted is called now and then. If it returns true, the packing ends with its results so
	// far; nil never interrupts.
	Interrupted func() bool
	// Budget limits the work; a step that has begun is completed, and one that is too expensive does
	// not begin. [MaxWork] unless set.
	Budget int
}

// Uncreated is a number of pods that will be created like an existing one. Its cost is limited by
// the room there is, not by the number.
type Uncreated struct {
	Like  *Pod
	Count int
}

// Packing contains the places of pods, and what is needed for them.
type Packing struct {
	Places []Place
	// Opened is how many nodes of each group are needed.
	Opened []int
	// Uncreated is how many pods that will be created have a place, by node.
	Uncreated map[string]int
	// UncreatedLike is the same for each [Uncreated.Like], or for the first of those that are alike.
	UncreatedLike map[*Pod]map[string]int
	// UnfinishedLike are the keys of UncreatedLike of which not all pods have a place, because they
	// were not fully considered.
	UnfinishedLike map[*Pod]bool
	// Left are the pods without a place.
	Left []*Pod
	// Unfinished are pods that were not fully considered; see [MaxWork].
	Unfinished []*Pod
	// Work is the number of comparisons, approximately.
	Work int
}

func (p *Packing) addUncreated(like *Pod, node string) {
	if p.UncreatedLike[like] == nil {
		p.UncreatedLike[like] = map[string]int{}
	}
	p.Uncreated[node]++
	p.UncreatedLike[like][node]++
}
