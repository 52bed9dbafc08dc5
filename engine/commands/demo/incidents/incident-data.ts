/** The configuration for the eleven incidents. */

/** Customers, by the number that they call from. */
export const callers = {
  harbour: '+15550110',
  acme: '+15550120',
  globex: '+15550130',
  initech: '+15550150',
  umbrella: '+15550160',
  wayne: '+15550170',
  stark: '+15550180',
  support: '+15550190',
} as const

export type CustomerName = keyof typeof callers

/** No customer has it. */
export const UNKNOWN_CALLER = '+15559990'

export const PREMIUM = '1900'
/** A prefix without a price in any rate plan. */
export const UNPRICED = '4930'
/** A prefix whose only carrier is down. */
export const BY_NORTHERN = '4420'
/** A prefix whose only carrier refuses every call. */
export const BY_SOUTHERN = '3315'
/** Numbers of the support set. */
export const SUPPORT = '1555030'

/**
 * A node of the platform is never at the address of a carrier's gateway: calls to that have a
 * price.
 */
export const GATEWAY_HOST = '127.0.0.2'

/** Addresses from which passwords are guessed. */
export const STRANGER_HOSTS = ['127.0.0.3', '127.0.0.4'] as const
export const OFFICE_DOMAIN = 'office.example'
export const GUESSED_EXTENSION = '2001'

export interface IncidentPorts {
  /** Nodes of set 1; the last one dies. */
  readonly office: readonly number[]
  /** Nodes of set 2: one that is taken out by hand, and a small one. */
  readonly support: readonly [number, number]
  /** Port of the gateway that refuses every call. */
  readonly southern: number
  /** Nothing listens there. */
  readonly northern: number
}

const customer = (name: string, number: string, more: object = {}) => ({
  name,
  rate_plan: 'standard',
  numbers: [number],
  balance: '100.00',
  ...more,
})

/** A seed file. */
export const incidentSeed = (
  { office, support, southern, northern }: IncidentPorts,
  password: string,
): string =>
  JSON.stringify({
    tenants: [{ slug: 'office', domains: [OFFICE_DOMAIN] }],
    extensions: [
      {
        tenant: 'office',
        domain: OFFICE_DOMAIN,
        extension: GUESSED_EXTENSION,
        password,
        display_name: 'Reception',
      },
    ],
    rate_plans: [{ name: 'standard', currency: 'USD' }],
    rates: [
      { rate_plan: 'standard', prefix: '1', rate_per_minute: '0.30', connect_fee: '0.01' },
      {
        rate_plan: 'standard',
        prefix: PREMIUM,
        rate_per_minute: '1.10',
        first_increment: 60,
        increment: 60,
      },
      ...[BY_NORTHERN, BY_SOUTHERN].map((prefix) => ({
        rate_plan: 'standard',
        prefix,
        rate_per_minute: '0.12',
      })),
    ],
    customers: [
      customer('harbour-main', callers.harbour),
      customer('acme-main', callers.acme),
      customer('globex', callers.globex, { balance: '0.00' }),
      customer('initech', callers.initech),
      customer('umbrella', callers.umbrella, { max_concurrent_calls: 1 }),
      customer('wayne', callers.wayne),
      customer('stark', callers.stark),
      customer('support-desk', callers.support),
    ],
    dispatcher: [
      {
        endpoint_name: 'office PBX',
        set_id: 1,
        algorithm: 4,
        nodes: office.map((port, index) => ({
          host: '127.0.0.1',
          internal_port: port,
          description: `office ${index + 1}`,
        })),
      },
      {
        endpoint_name: 'support PBX',
        set_id: 2,
        algorithm: 8,
        nodes: support.map((port, index) => ({
          host: '127.0.0.1',
          internal_port: port,
          description: `support ${index + 1}`,
          ...(index === 1 && { max_calls: 1 }),
        })),
      },
    ],
    carriers: [
      { name: 'northern', port: northern },
      { name: 'southern', port: southern },
    ].map(({ name, port }) => ({
      name,
      direction: 'out',
      gateways: [{ host: GATEWAY_HOST, port }],
    })),
    outbound_routes: [
      { name: 'to the north', prefix: BY_NORTHERN, carrier: 'northern' },
      { name: 'to the south', prefix: BY_SOUTHERN, carrier: 'southern' },
    ],
    inbound_routes: [{ name: 'support', prefix: SUPPORT, set_id: 2 }],
  })
