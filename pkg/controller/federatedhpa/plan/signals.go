// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"regexp"
	"strings"
	"unicode"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
)

// demandFactor limits how much metrics can ask for at once, as a multiple of the running replicas,
// because metrics are noisy.
const demandFactor = 4

// LocalOf reads a cluster's autoscaler, whatever numbers the cluster reports.
func LocalOf(hpa *autoscalingv2.HorizontalPodAutoscaler) *Local {
	highest := max(1, int64(hpa.Spec.MaxReplicas))
	l := &Local{
		Bounds:  Bounds{Min: max(0, min(int64(ptr.Deref(hpa.Spec.MinReplicas, 1)), highest)), Max: highest},
		Version: hpa.ResourceVersion, UID: string(hpa.UID), Terminating: hpa.DeletionTimestamp != nil,
		Current: max(0, int64(hpa.Status.CurrentReplicas)), Desired: max(0, int64(hpa.Status.DesiredReplicas)),
	}
	l.New = len(hpa.Status.Conditions) == 0
	l.AtZero = !l.New && l.Min == 0 && l.Current == 0 && l.Desired == 0
	for _, c := range hpa.Status.Conditions {
		switch {
		case c.Type == autoscalingv2.ScaledToZero && c.Status == corev1.ConditionTrue: // since Kubernetes 1.36, it obeys a minimum then
			l.AtZero = false
		case (c.Type == autoscalingv2.ScalingActive || c.Type == autoscalingv2.AbleToScale) && c.Status == corev1.ConditionFalse:
			l.Inactive = Hold{c.Reason, c.Message}
		case c.Type == autoscalingv2.ScalingLimited && c.Status == corev1.ConditionTrue:
			l.Limit = limits[c.Reason]
		}
	}
	// Its status describes the bounds that it saw. Until it has seen new ones, it is not limited by
	// them.
	if l.Limit == v1alpha1.ByMax && l.Desired < l.Max || l.Limit == v1alpha1.ByMin && l.Desired > l.Min {
		l.Limit = ""
	}
	l.Demand = demandOf(hpa, l)
	return l
}

// limits maps the reasons of the condition ScalingLimited.
var limits = map[string]v1alpha1.LimitedBy{
	"TooManyReplicas": v1alpha1.ByMax, "TooFewReplicas": v1alpha1.ByMin, "ScaleUpLimit": v1alpha1.ByRate, "ScaleDownLimit": v1alpha1.ByRate,
}

// demandOf returns the replicas that the metrics ask for. If the metrics do not say, it is one
// beyond the limit.
func demandOf(hpa *autoscalingv2.HorizontalPodAutoscaler, l *Local) int64 {
	ratio := 0.0
	for _, m := range hpa.Status.CurrentMetrics {
		ratio = max(ratio, ratioOf(m, hpa.Spec.Metrics))
	}
	demand := int64(math.Ceil(min(ratio, demandFactor)*float64(l.Current) - 1e-6))
	switch l.Limit {
	case v1alpha1.ByMax:
		return max(demand, l.Max+1)
	case v1alpha1.ByMin:
		return max(0, min(demand, l.Min-1))
	}
	return l.Desired
}

// ratioOf returns the current value of a metric divided by its target.
func ratioOf(is autoscalingv2.MetricStatus, all []autoscalingv2.MetricSpec) float64 {
	rounded := 0.0
	if is.External != nil || is.Object != nil {
		rounded = averageUnit
	}
	for _, wanted := range all {
		if target, current := targetAndValue(is, wanted); target != nil {
			ratio := quotient(*target, *current, rounded)
			if math.IsNaN(ratio) {
				return 0
			}
			return ratio
		}
	}
	return 0
}

// averageUnit is the unit to which autoscalers round up the average of a total. Multiplied by the
// running replicas, a rounded average is slightly more than the total, and would ask for one
// replica more than the autoscaler itself.
const averageUnit = 0.001

// targetAndValue returns the target and the current value of a metric, nil if the two belong to
// different metrics.
func targetAndValue(is autoscalingv2.MetricStatus, s autoscalingv2.MetricSpec) (*autoscalingv2.MetricTarget, *autoscalingv2.MetricValueStatus) {
	if is.Type != s.Type {
		return nil, nil
	}
	switch {
	case is.Resource != nil && s.Resource != nil && is.Resource.Name == s.Resource.Name:
		return &s.Resource.Target, &is.Resource.Current
	case is.ContainerResource != nil && s.ContainerResource != nil && is.ContainerResource.Name == s.ContainerResource.Name && is.ContainerResource.Container == s.ContainerResource.Container:
		return &s.ContainerResource.Target, &is.ContainerResource.Current
	case is.Pods != nil && s.Pods != nil && isSameMetric(is.Pods.Metric, s.Pods.Metric):
		return &s.Pods.Target, &is.Pods.Current
	case is.Object != nil && s.Object != nil && isSameMetric(is.Object.Metric, s.Object.Metric) && is.Object.DescribedObject == s.Object.DescribedObject:
		return &s.Object.Target, &is.Object.Current
	case is.External != nil && s.External != nil && isSameMetric(is.External.Metric, s.External.Metric):
		return &s.External.Target, &is.External.Current
	}
	return nil, nil
}

// isSameMetric compares the selectors, too: metrics of one name may be those of several queues.
func isSameMetric(a, b autoscalingv2.MetricIdentifier) bool { return equality.Semantic.DeepEqual(a, b) }

// quotient divides a current value by its target. An average may be too high by what it was rounded
// up.
func quotient(target autoscalingv2.MetricTarget, current autoscalingv2.MetricValueStatus, rounded float64) float64 {
	switch {
	case target.AverageUtilization != nil && current.AverageUtilization != nil && *target.AverageUtilization > 0:
		return float64(*current.AverageUtilization) / float64(*target.AverageUtilization)
	case target.AverageValue != nil && current.AverageValue != nil && !target.AverageValue.IsZero():
		return max(0, current.AverageValue.AsApproximateFloat64()-rounded) / target.AverageValue.AsApproximateFloat64()
	case target.Value != nil && current.Value != nil && !target.Value.IsZero():
		return current.Value.AsApproximateFloat64() / target.Value.AsApproximateFloat64()
	}
	return 0
}

// Limits on how much of a cluster's own text goes into the status of an object.
const (
	maxReason  = 64
	maxMessage = 300
)

var (
	addresses   = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://[^\s"'<>]+|\b(\d{1,3}\.){3}\d{1,3}(:\d+)?\b|\[[0-9a-f]*:[0-9a-f:.%]+\](:\d+)?`)
	credentials = regexp.MustCompile(`(?i)\b(bearer|basic|token|password|authorization)\b["']?[\s:=]+["']?[^\s"',;]+`)
	longWords   = regexp.MustCompile(`[A-Za-z0-9+/_=.-]{40,}`)
)

// sanitized makes a sentence from a cluster safe to show: short, on one line, and without anything
// that could be an address or a credential. Users of the hub are not necessarily allowed to know
// these.
func sanitized(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return -1
	}, text[:min(len(text), 16*maxMessage)])
	text = addresses.ReplaceAllString(text, "(address)")
	text = credentials.ReplaceAllString(text, "$1 (hidden)")
	text = longWords.ReplaceAllStringFunc(text, func(word string) string {
		if strings.ContainsAny(word, "0123456789") {
			return "(hidden)"
		}
		return word
	})
	text = strings.Join(strings.Fields(text), " ")
	if all := []rune(text); len(all) > maxMessage {
		return string(all[:maxMessage-1]) + "…"
	}
	return text
}

// sanitizedReason returns a reason that may come from a cluster, if it has the form of one.
func sanitizedReason(word string) string {
	word = strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return -1
	}, word)
	return word[:min(len(word), maxReason)]
}
