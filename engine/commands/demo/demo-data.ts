/** Numbers of the customer: the calls through each instance come from one of them. */
export const callerNumber = (index: number): string => `+1555010${index}`

/** The user in From of `sipp -sn uac`, which calls the name `service`. */
const SIPP = 'sipp'

/**
 * A seed file: one customer with a wallet, a price and `count` numbers, and one set of PBX nodes.
 */
export const demoSeed = (nodePorts: readonly number[], count: number): string =>
  JSON.stringify({
    rate_plans: [{ name: 'demo', currency: 'USD' }],
    rates: [
      { rate_plan: 'demo', prefix: '', rate_per_minute: '0.60', connect_fee: '0.02' },
      { rate_plan: 'demo', prefix: '1', rate_per_minute: '0.30', connect_fee: '0.01' },
    ],
    customers: [
      {
        name: 'demo customer',
        rate_plan: 'demo',
        balance: '100.00',
        numbers: [...Array.from({ length: count }, (_, index) => callerNumber(index)), SIPP],
      },
    ],
    dispatcher: [
      {
        endpoint_name: 'demo PBX',
        set_id: 1,
        algorithm: 9,
        nodes: nodePorts.map((port, index) => ({
          host: '127.0.0.1',
          internal_port: port,
          weight: index === 0 ? 100 : 50,
          description: `demo node ${index + 1}`,
        })),
      },
    ],
  })
