// SPDX-License-Identifier: Apache-2.0

// Package explore searches every interleaving of the real plans with everything around them.
//
// Tests and storms try some of the orders in which writes, watches, failures and users can meet. A
// [Search] tries all of them, up to a bound: a state is a small value, and each step, of any actor,
// leads to another state. Every step keeps the invariants. From every state, the steps that are not
// faults end, in any order, in a state with the requested numbers of serving and reserve machines.
//
// [Reserve] models one MachineDeployment. The plan of its controller, and how that reads objects, is
// the code that ships. The requests that carry a plan out, what the controller knows of their answers,
// watches and the cloud are modeled, each request as a step of its own. [Wishes] models how the
// machines of Reserves reach MachineDeployments, [Raises] who raises replicas for pods that wait,
// [Removals] how an autoscaler removes machines, [Moves] how replicas and shares move between zones,
// and [Distribution] package distribute. In these, too, machines are created, marked and deleted as
// the plan that ships decides. [Replay] follows a story that a search told.
//
// Steps without an [Actor] end in any order. An actor has its turn again and again: steps that repeat
// forever count only if no actor could take another step all the time.
//
// A search shows nothing about states beyond its bound: more machines, more faults in one story, or
// actors that the model lacks.
package explore
