// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Excess is a number of machines to keep in reserve: a count, a percentage of replicas, resources,
// or the largest of several of these. The zero value requests none.
//
// +k8s:deepcopy-gen=false
type Excess struct {
	// Count is a number of machines.
	Count *int32
	// Percent is a percentage of replicas, rounded up to whole machines.
	Percent *int32
	// Resources requests as many machines as cover each of them. They are sorted by name, and each
	// name occurs once.
	Resources []ResourceExcess
}

// ResourceExcess is an amount of one resource to keep free, as a quantity or as a percentage of
// what the serving machines have.
//
// +k8s:deepcopy-gen=false
type ResourceExcess struct {
	Name     corev1.ResourceName
	Quantity *resource.Quantity
	Percent  *int32
}

// The grammar is the same as in the admission policy in kubernetes/policies. As one expression, it
// would take a megabyte.
const (
	countPattern    = `(0|[1-9][0-9]{0,9})`
	percentPattern  = `(0|[1-9][0-9]{0,2}|1000)%`
	quantityPattern = `((0|[1-9][0-9]{0,29})|(0|[1-9][0-9]{0,6})\.[0-9]{1,3})(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?`
	namePattern     = `([a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`
	amountPattern   = namePattern + `=(` + percentPattern + `|` + quantityPattern + `)`
	termPattern     = `(` + countPattern + `|` + percentPattern + `|` + amountPattern + `)`

	excessForms = `a count ("2"), a percentage of replicas ("5%"), resources ("cpu=16,memory=64Gi", "cpu=10%"), or the largest of these ("max(1,5%)")`
)

// They are compiled on first use: few clusters use all of them.
var (
	countRegexp = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^` + countPattern + `$`) })
	termRegexp  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^` + termPattern + `$`) })
)

func isCount(text string) bool { return countRegexp().MatchString(text) }

// isExcess reports whether text is a term, several amounts, or the largest of several terms.
func isExcess(text string) bool {
	inner, largest := strings.CutPrefix(text, "max(")
	inner, closed := strings.CutSuffix(inner, ")")
	terms := strings.Split(inner, ",")
	for _, term := range terms {
		if !termRegexp().MatchString(term) || len(terms) > 1 && !largest && !strings.Contains(term, "=") {
			return false
		}
	}
	return largest == closed && (!largest || len(terms) > 1)
}

// ParseExcess parses an excess as users write it: "2", "5%", "cpu=16,memory=64Gi", "cpu=10%",
// "max(1,5%)". For other text, it returns an error that describes what to write.
func ParseExcess(text string) (Excess, error) {
	if len(text) > maxLength || !isExcess(text) {
		return Excess{}, fmt.Errorf("excess %.80q: write %s, at most %d characters, without spaces", text, excessForms, maxLength)
	}
	var excess Excess
	for term := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(text, "max("), ")"), ",") {
		if err := excess.addTerm(term); err != nil {
			return Excess{}, fmt.Errorf("excess %q: %w", text, err)
		}
	}
	slices.SortFunc(excess.Resources, func(a, b ResourceExcess) int {
		return strings.Compare(string(a.Name), string(b.Name))
	})
	return excess, nil
}

// addTerm parses one term. Each kind, and each resource, may occur once.
func (e *Excess) addTerm(term string) error {
	if name, value, is := strings.Cut(term, "="); is {
		return e.addResource(corev1.ResourceName(name), value)
	}
	if percent, is := parsePercent(term); is {
		if e.Percent != nil {
			return errors.New("write a percentage of replicas only once")
		}
		e.Percent = percent
		return nil
	}
	count, err := parseCount("machines", term)
	if err != nil {
		return err
	}
	if e.Count != nil {
		return errors.New("write a count only once")
	}
	e.Count = &count
	return nil
}

func (e *Excess) addResource(name corev1.ResourceName, value string) error {
	if slices.ContainsFunc(e.Resources, func(r ResourceExcess) bool { return r.Name == name }) {
		return fmt.Errorf("name %s only once", name)
	}
	r := ResourceExcess{Name: name}
	if percent, is := parsePercent(value); is {
		r.Percent = percent
	} else {
		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			return fmt.Errorf("parse amount of %s: %w", name, err)
		}
		quantity.RoundUp(resource.Milli) // smaller amounts have suffixes that users cannot write
		r.Quantity = &quantity
	}
	e.Resources = append(e.Resources, r)
	return nil
}

func parsePercent(text string) (*int32, bool) {
	digits, ok := strings.CutSuffix(text, "%")
	if !ok {
		return nil, false
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	percent := int32(n)
	return &percent, err == nil
}

func parseCount(what, digits string) (int32, error) {
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s %s: must be at most 2147483647", what, digits)
	}
	return int32(n), nil
}

// devicePrefix begins the name of a resource that stands for the devices of a DeviceClass.
const devicePrefix = "devices."

// DeviceClassOf returns the DeviceClass (resource.k8s.io) whose devices a resource of an excess stands
// for; empty if it stands for none. A name with a slash is that of an extended resource.
func DeviceClassOf(name corev1.ResourceName) string {
	class, is := strings.CutPrefix(string(name), devicePrefix)
	if !is || strings.Contains(class, "/") {
		return ""
	}
	return class
}

// DevicesOf returns the resource of an excess that stands for the devices of a DeviceClass.
func DevicesOf(class string) corev1.ResourceName { return corev1.ResourceName(devicePrefix + class) }

// DeviceClasses returns the DeviceClasses whose devices an excess requests, sorted by name.
func (e Excess) DeviceClasses() (classes []string) {
	for _, r := range e.Resources {
		if class := DeviceClassOf(r.Name); class != "" {
			classes = append(classes, class)
		}
	}
	return classes
}

// String is the form that [ParseExcess] reads; empty for the zero value.
func (e Excess) String() string {
	var terms []string
	if e.Count != nil {
		terms = append(terms, strconv.Itoa(int(*e.Count)))
	}
	if e.Percent != nil {
		terms = append(terms, strconv.Itoa(int(*e.Percent))+"%")
	}
	mixed := len(terms) > 1 || len(terms) == 1 && len(e.Resources) > 0
	for _, r := range e.Resources {
		terms = append(terms, r.String())
	}
	text := strings.Join(terms, ",")
	if mixed {
		return "max(" + text + ")"
	}
	return text
}

// String is one amount of [Excess.String].
func (r ResourceExcess) String() string {
	if r.Percent != nil {
		return fmt.Sprintf("%s=%d%%", r.Name, *r.Percent)
	}
	return fmt.Sprintf("%s=%s", r.Name, r.Quantity)
}
