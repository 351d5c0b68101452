// SPDX-License-Identifier: Apache-2.0

// Package explore searches every interleaving of the shipped plans with everything around them.
//
// Tests and storms try some orders in which writes, watches, failures and people can meet. A [Search] tries all of them, up to a bound: a
// state is a small value, and each step, of whatever actor, leads to another one. On every step the invariants hold, and from every
// state the steps that are no faults end, in whatever order they happen, in a state where as many machines serve and are in reserve as
// was asked for.
//
// [Reserve] is the first model. The plans of package reserve, the decision how a machine is born and the order in which
// machine-controller-manager deletes are the code that ships. The writes, the guards, the stores and the cloud are modelled, each write as a step of
// its own.
//
// A search shows nothing about states beyond its bound: more machines, more faults on one way, or actors that the model does not have.
package explore
