// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/evenkeel/evenkeel/test/fixture"
)

// State is what is stored at one moment, by kind and name, field by field. It contains nothing that
// differs between two plays of one story by chance:
//
//   - machines and their Nodes are numbered in their MachineSet, by birth, then by content;
//   - a time is the number of the act in which it was, or <ahead>;
//   - lists are in the order of their keys;
//   - a reference to an owner says whether that owner is there, and observedGeneration whether it is
//     current;
//   - what exclusions list is left out.
type State map[string]Object

// Object are the fields of an object.
type Object map[string]string

// normalise returns the State of the stage now.
func (s *stage) normalise() State {
	n, state := s.number(), State{}
	for _, kind := range []string{Deployment, Set, Machine, Node} {
		for _, o := range s.w.Objects(resourceOf(kind)) {
			state[kind+" "+n.rename(o.GetName())] = n.fields(kind, o)
		}
	}
	for _, e := range s.w.Objects(events) {
		s.addEvent(state, n, e)
	}
	return state
}

// addEvent adds an Event of a MachineSet to the state. How often it occurred is not compared.
func (s *stage) addEvent(state State, n *numbering, e *unstructured.Unstructured) {
	kind, _, _ := unstructured.NestedString(e.Object, "involvedObject", "kind")
	name, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name")
	field := fmt.Sprintf("%v %v", e.Object["type"], e.Object["reason"])
	if excluded("Event", kind+" "+field, s.loose) {
		return
	}
	key := "Event " + kind + " " + n.rename(name)
	if state[key] == nil {
		state[key] = Object{}
	}
	state[key][field] = "seen"
}

// numbering gives machines their numbers.
type numbering struct {
	moments []time.Time
	loose   bool
	uids    map[string]bool
	// names are new names of machines, owners the MachineSet and the MachineDeployment of each.
	names  map[string]string
	order  []string
	owners map[string][]string
	gone   *strings.Replacer
}

// number numbers the machines that are there now.
func (s *stage) number() *numbering {
	n := &numbering{moments: s.moments, loose: s.loose, uids: map[string]bool{}, names: map[string]string{}, owners: map[string][]string{}}
	n.gone = s.watch.replacer(nil)
	roots := map[string]string{}
	for _, kind := range []string{Deployment, Set} {
		for _, o := range s.w.Objects(resourceOf(kind)) {
			n.uids[string(o.GetUID())] = true
			roots[o.GetName()] = controllerOf(o)
		}
	}
	type placed struct{ name, set, content string }
	var all []placed
	for _, m := range s.w.Objects(machines) {
		set := cmp.Or(controllerOf(m), "orphan-"+m.GetLabels()["name"])
		n.owners[m.GetName()] = []string{set, cmp.Or(roots[set], m.GetLabels()["name"])}
		content := n.content(m, s.w.Get(nodes, "", m.GetName()))
		all = append(all, placed{m.GetName(), set, content})
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i], all[j]
		return cmp.Or(cmp.Compare(a.set, b.set), cmp.Compare(a.content, b.content), cmp.Compare(a.name, b.name)) < 0
	})
	count := map[string]int{}
	for _, m := range all {
		n.names[m.name] = fmt.Sprintf("%s#%d", m.set, count[m.set])
		n.order = append(n.order, m.name)
		count[m.set]++
	}
	n.gone = s.watch.replacer(n.names)
	return n
}

// of returns the names of the machines of a MachineDeployment or MachineSet.
func (n *numbering) of(owner string) (names []string) {
	for _, name := range n.order {
		if slices.Contains(n.owners[name], owner) {
			names = append(names, name)
		}
	}
	return names
}

// content returns what distinguishes a machine from others of its MachineSet, with its birth first.
func (n *numbering) content(m, node *unstructured.Unstructured) string {
	var lines []string
	lines = append(lines, lineUp(n.fields(Machine, m))...)
	if node != nil {
		lines = append(lines, lineUp(n.fields(Node, node))...)
	}
	return n.bornIn(m) + strings.Join(lines, "\n")
}

func (n *numbering) bornIn(m *unstructured.Unstructured) string {
	if n.loose {
		return ""
	}
	return fmt.Sprintf("%03d ", n.act(m.GetCreationTimestamp().Time))
}

func lineUp(o Object) (lines []string) {
	for _, field := range slices.Sorted(maps.Keys(o)) {
		lines = append(lines, field+"="+o[field])
	}
	return lines
}

// act returns the number of the act in which a time is.
func (n *numbering) act(t time.Time) int {
	number := 0
	for i, moment := range n.moments {
		if !t.Before(moment) {
			number = i + 1
		}
	}
	return number
}

var timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// rename replaces names of machines and times in a text.
func (n *numbering) rename(text string) string {
	if synonym, found := synonyms[text]; found {
		text = synonym
	}
	return timestamp.ReplaceAllStringFunc(n.gone.Replace(text), n.date)
}

func (n *numbering) date(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	switch {
	case err != nil:
		return text
	case t.After(time.Now()):
		return "<ahead>"
	case n.loose:
		return "<time>"
	}
	return fmt.Sprintf("<act %d>", n.act(t))
}

// fields returns the fields of an object that are compared.
func (n *numbering) fields(kind string, o *unstructured.Unstructured) Object {
	f := &flattener{numbering: n, kind: kind, out: Object{}, generation: o.GetGeneration()}
	for _, part := range []string{"metadata", "spec", "status"} {
		f.add(part, o.Object[part])
	}
	return f.out
}

// controllerOf returns the name of the controller of an object.
func controllerOf(o *unstructured.Unstructured) string {
	for _, r := range o.GetOwnerReferences() {
		if r.Controller != nil && *r.Controller {
			return r.Name
		}
	}
	return ""
}

// namespaced excludes nothing but what every object here has.
func namespaced(field string, value any) bool {
	return field == "metadata.namespace" && value == fixture.Namespace || field == "metadata.name"
}
