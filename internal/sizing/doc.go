// SPDX-License-Identifier: Apache-2.0

// Package sizing predicts what a reserve costs and how long pods wait with it, and suggests a size.
// [Run] simulates demand with a [Policy], and [Size] compares many runs. docs/size.md lists what is
// modeled.
//
// Laws:
//
//  1. The same input has the same outcome.
//  2. Every pod counts once: it waited for some time, or still waits a day after the end.
//  3. Without demand, there are no waits, and a fixed amount costs exactly itself.
//  4. A larger amount never costs fewer reserve machine hours, if no maximum limits it.
//  5. A schedule that is always active has the outcome of a fixed amount of its size.
//  6. While no pod ends and each needs a machine, a larger amount lets no more pods wait, and none
//     longer.
//  7. No machine with pods is deleted, and machines stay within the maximum.
//  8. Suggestions keep the desired wait in the simulation. A suggested schedule costs less than the
//     suggested amount.
package sizing
