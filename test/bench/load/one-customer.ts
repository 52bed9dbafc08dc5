/** What the benches of calls provision: one customer who pays for every call, and one set of nodes. */

/** The customer's number. */
export const caller = '15550001111'

/** A seed; calls go to the nodes at these ports of 127.0.0.1, in turn. */
export const oneCustomer = (nodePorts: readonly number[], algorithm = 4) => ({
  rate_plans: [{ name: 'load', currency: 'USD' }],
  rates: [{ rate_plan: 'load', prefix: '1', rate_per_minute: '0.01' }],
  customers: [{ name: 'load', rate_plan: 'load', numbers: [caller], balance: '1000000.00' }],
  dispatcher: [
    {
      endpoint_name: 'load',
      set_id: 1,
      algorithm,
      nodes: nodePorts.map((port, index) => ({
        ...{ host: '127.0.0.1', internal_port: port, priority: 10 + index },
      })),
    },
  ],
})
