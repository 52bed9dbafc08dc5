/** A seed file: one customer with a wallet and a price, and one set of three nodes. */
export const demoSeed = (nodePorts: readonly number[]): string =>
  JSON.stringify({
    rate_plans: [{ name: 'demo', currency: 'USD' }],
    rates: [{ rate_plan: 'demo', prefix: '1', rate_per_minute: '0.30', connect_fee: '0.01' }],
    customers: [
      { name: 'demo customer', rate_plan: 'demo', numbers: ['+15550100'], balance: '100.00' },
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
