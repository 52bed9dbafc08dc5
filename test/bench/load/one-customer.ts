/**
 * The provisioning of the benches of calls: one customer who pays for every call, and one set of
 * nodes.
 */

/** The customer's number. */
export const caller = '15550001111'

/** As many as a set may have. */
const NODES_IN_SET = 100
/** Priorities end at 100. */
const PRIORITIES = 90

/**
 * A seed; calls go to the nodes at these ports of 127.0.0.1, in turn: to the first hundred of them.
 */
export const oneCustomer = (nodePorts: readonly number[], algorithm = 4, perMinute = '0.01') => ({
  rate_plans: [{ name: 'load', currency: 'USD' }],
  rates: [{ rate_plan: 'load', prefix: '1', rate_per_minute: perMinute }],
  customers: [{ name: 'load', rate_plan: 'load', numbers: [caller], balance: '1000000.00' }],
  dispatcher: Array.from(
    { length: Math.max(1, Math.ceil(nodePorts.length / NODES_IN_SET)) },
    (_, index) => ({
      endpoint_name: `load ${index + 1}`,
      set_id: index + 1,
      algorithm,
      nodes: nodePorts
        .slice(index * NODES_IN_SET, (index + 1) * NODES_IN_SET)
        .map((port, place) => ({
          host: '127.0.0.1',
          internal_port: port,
          priority: 10 + (place % PRIORITIES),
        })),
    }),
  ),
})
