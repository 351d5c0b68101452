// SPDX-License-Identifier: Apache-2.0

// Package machines creates clients of the machine API that are faster than generated ones.
package machines

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	mcmscheme "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/scheme"
	mcmclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/scheme"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
)

// Evenkeel returns a client of Evenkeel's kinds, which reads those of the machine API in less time
// than a generated client. Watches of them take most of the processor time of a manager.
func Evenkeel(config *rest.Config) (versioned.Interface, error) {
	all, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	machines, err := machineAPI(config, scheme.Scheme, scheme.Codecs)
	if err != nil {
		return nil, err
	}
	return evenkeelClient{all, machineclient.New(machines)}, nil
}

type evenkeelClient struct {
	versioned.Interface
	machines machineclient.MachineV1alpha1Interface
}

func (c evenkeelClient) MachineV1alpha1() machineclient.MachineV1alpha1Interface { return c.machines }

// MCM returns a client with the types of machine-controller-manager's own controllers.
func MCM(config *rest.Config) (mcm.Interface, error) {
	all, err := mcm.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	machines, err := machineAPI(config, mcmscheme.Scheme, mcmscheme.Codecs)
	if err != nil {
		return nil, err
	}
	return mcmClient{all, mcmclient.New(machines)}, nil
}

type mcmClient struct {
	mcm.Interface
	machines mcmclient.MachineV1alpha1Interface
}

func (c mcmClient) MachineV1alpha1() mcmclient.MachineV1alpha1Interface { return c.machines }

// machineAPI returns a client of the machine API with the types of a scheme.
func machineAPI(config *rest.Config, scheme *runtime.Scheme, codecs serializer.CodecFactory) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.APIPath = "/apis"
	config.GroupVersion = &v1alpha1.SchemeGroupVersion
	config.NegotiatedSerializer = newCodecs(scheme, codecs)
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	return rest.RESTClientFor(config)
}
