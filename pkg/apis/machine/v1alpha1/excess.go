// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Excess is a wish for machines beyond need: a count, a percentage of replicas, or resources. Exactly one of its
// fields is set; the zero value is none at all.
//
// +k8s:deepcopy-gen=false
type Excess struct {
	// Count is a number of machines.
	Count *int32
	// Percent is a percentage of replicas, rounded up to whole machines.
	Percent *int32
	// Resources asks for as many machines as cover each of them. Sorted by name, each name once.
	Resources []ResourceExcess
}

// ResourceExcess is an amount of one resource to keep free, as a quantity or as a percentage of what serves.
//
// +k8s:deepcopy-gen=false
type ResourceExcess struct {
	Name     corev1.ResourceName
	Quantity *resource.Quantity
	Percent  *int32
}

// The grammar, shared letter by letter with the admission policy in kubernetes/policies.
const (
	countPattern    = `(0|[1-9][0-9]{0,9})`
	percentPattern  = `(0|[1-9][0-9]{0,2}|1000)%`
	quantityPattern = `((0|[1-9][0-9]{0,29})|(0|[1-9][0-9]{0,6})\.[0-9]{1,3})(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?`
	namePattern     = `([a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`
	amountPattern   = namePattern + `=(` + percentPattern + `|` + quantityPattern + `)`
	excessPattern   = `(` + countPattern + `|` + percentPattern + `|` + amountPattern + `(,` + amountPattern + `)*)`

	excessForms = `a count ("2"), a percentage of replicas ("5%"), or resources ("cpu=16,memory=64Gi", "cpu=10%")`
)

var excessRegexp = regexp.MustCompile(`^` + excessPattern + `$`)

// ParseExcess reads an excess as users write it: "2", "5%", "cpu=16,memory=64Gi", "cpu=10%". What is not
// understood whole is refused with an error that says what to write.
func ParseExcess(text string) (Excess, error) {
	if !excessRegexp.MatchString(text) {
		return Excess{}, fmt.Errorf("excess %q: write %s, without spaces", text, excessForms)
	}
	if strings.Contains(text, "=") {
		return parseResources(text)
	}
	if percent, ok := parsePercent(text); ok {
		return Excess{Percent: percent}, nil
	}
	count, err := parseCount("excess", text)
	if err != nil {
		return Excess{}, err
	}
	return Excess{Count: &count}, nil
}

func parseResources(text string) (Excess, error) {
	var excess Excess
	for amount := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(amount, "=")
		r := ResourceExcess{Name: corev1.ResourceName(name)}
		if percent, ok := parsePercent(value); ok {
			r.Percent = percent
		} else {
			quantity, err := resource.ParseQuantity(value)
			if err != nil {
				return Excess{}, fmt.Errorf("excess %q: parse amount of %s: %w", text, name, err)
			}
			r.Quantity = &quantity
		}
		excess.Resources = append(excess.Resources, r)
	}
	slices.SortFunc(excess.Resources, func(a, b ResourceExcess) int {
		return strings.Compare(string(a.Name), string(b.Name))
	})
	for i := range excess.Resources[1:] {
		if excess.Resources[i].Name == excess.Resources[i+1].Name {
			return Excess{}, fmt.Errorf("excess %q: name %s only once", text, excess.Resources[i].Name)
		}
	}
	return excess, nil
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

// String is the form that [ParseExcess] reads; empty for the zero value.
func (e Excess) String() string {
	switch {
	case e.Count != nil:
		return strconv.Itoa(int(*e.Count))
	case e.Percent != nil:
		return strconv.Itoa(int(*e.Percent)) + "%"
	}
	amounts := make([]string, 0, len(e.Resources))
	for _, r := range e.Resources {
		amounts = append(amounts, r.String())
	}
	return strings.Join(amounts, ",")
}

// String is one amount of [Excess.String].
func (r ResourceExcess) String() string {
	if r.Percent != nil {
		return fmt.Sprintf("%s=%d%%", r.Name, *r.Percent)
	}
	return fmt.Sprintf("%s=%s", r.Name, r.Quantity)
}
