// SPDX-License-Identifier: Apache-2.0

package fit

// Group are machines of a reserve that are opened one after the other: the first can be had alone, the second only with
// the first.
type Group struct {
	Name string
	// Nodes are names of closed nodes of the room, in the order in which they are opened.
	Nodes []string
	// Limit is how many of them may be opened.
	Limit int
}

// Place is where a pod goes.
type Place struct {
	Pod  *Pod
	Node string
}

// Demand is what waits for a place.
type Demand struct {
	Pods []*Pod
	// Uncreated are pods that will be created.
	Uncreated []Uncreated
	// Interrupted is asked now and then whether to end with what has been found so far; nil never interrupts.
	Interrupted func() bool
	// Budget bounds the work, give or take what is begun; [MaxWork] unless set.
	Budget int
}

// Uncreated is how many pods like one that exists are yet to be created. It costs no more than there is room for.
type Uncreated struct {
	Like  *Pod
	Count int
}

// Packing is where pods go, and what that takes.
type Packing struct {
	Places []Place
	// Opened is how many nodes of each group are needed.
	Opened []int
	// Uncreated is how many pods that are yet to be created have a place, by node.
	Uncreated map[string]int
	// Left are the pods that have no place.
	Left []*Pod
	// Unfinished are pods that were not looked at to the end: see [MaxWork].
	Unfinished []*Pod
	// Work is about how many comparisons it took.
	Work int
}
