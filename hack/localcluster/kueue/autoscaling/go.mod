module k8s.io/autoscaler/cluster-autoscaler/apis

go 1.26.5

require github.com/evenkeel/evenkeel v0.0.0

replace github.com/evenkeel/evenkeel => ../../../..
