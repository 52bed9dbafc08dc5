/** The steps to a first call, and the requests that they make. */

/** Which steps are done. */
export interface Setup {
  readonly source: boolean
  readonly node: boolean
  readonly price: boolean
  readonly customer: boolean
  readonly call: boolean
}

export interface StepField {
  readonly name: string
  readonly label: string
  readonly value: string
  readonly pattern?: string
  readonly hint?: string
}

export interface Request {
  readonly method: 'POST'
  /** Under `/api/v1`. */
  readonly path: string
  readonly body: object
}

export interface Step {
  readonly name: keyof Setup
  readonly title: string
  readonly about: string
  readonly fields: readonly StepField[]
  readonly action: string
  readonly requests: (given: Readonly<Record<string, string>>) => readonly Request[]
}

const PORT = String.raw`\d{1,5}`
const NUMBER = String.raw`\+?\d{2,20}`
const MONEY = String.raw`\d{1,9}(\.\d{1,6})?`
const plan = 'retail'

const post = (path: string, body: object): Request => ({ method: 'POST', path, body })

export const steps: readonly Step[] = [
  {
    name: 'source',
    title: 'Add a trunk',
    action: 'Add the trunk',
    about: 'Calls are taken from its address. The number in From tells which customer pays.',
    fields: [
      { name: 'name', label: 'Name', value: 'trunk' },
      { name: 'host', label: 'Address', value: '', hint: 'from which it sends' },
      { name: 'port', label: 'Port', value: '5060', pattern: PORT },
    ],
    requests: ({ name, host, port }) => [
      post('/routing/carriers', {
        name,
        payer: 'from_number',
        gateways: [{ host, port: Number(port) }],
      }),
    ],
  },
  {
    name: 'node',
    title: 'Add a node',
    action: 'Add the node',
    about: 'A PBX or another SIP server that takes the calls.',
    fields: [
      { name: 'set', label: 'Name of its set', value: 'pbx' },
      { name: 'host', label: 'Address', value: '' },
      { name: 'port', label: 'Port', value: '5060', pattern: PORT },
    ],
    requests: ({ set, host, port }) => [
      post('/dispatcher', {
        endpoint_name: set,
        algorithm: 8,
        nodes: [{ host, internal_port: Number(port) }],
      }),
    ],
  },
  {
    name: 'price',
    title: 'Add a price',
    action: 'Add the price',
    about: 'A call without a price is refused. An empty prefix is a price for every number.',
    fields: [
      { name: 'prefix', label: 'Prefix', value: '', pattern: String.raw`\+?\d{0,20}` },
      { name: 'price', label: 'Price of a minute', value: '0.10', pattern: MONEY },
      { name: 'currency', label: 'Currency', value: 'USD', pattern: '[A-Z]{3}' },
    ],
    requests: ({ prefix, price, currency }) => [
      post('/rate-plans', { name: plan, currency }),
      post('/rates', { rate_plan: plan, prefix, rate_per_minute: price }),
    ],
  },
  {
    name: 'customer',
    title: 'Add a customer',
    action: 'Add the customer',
    about: 'Its wallet pays for calls from its numbers.',
    fields: [
      { name: 'name', label: 'Name', value: 'first customer' },
      { name: 'number', label: 'Its number', value: '', pattern: NUMBER },
      { name: 'balance', label: 'Opening balance', value: '10.00', pattern: MONEY },
    ],
    requests: ({ name, number, balance }) => [
      post('/customers', { name, rate_plan: plan, numbers: [number], balance }),
    ],
  },
  {
    name: 'call',
    title: 'Place a test call',
    action: 'Simulate the call',
    about:
      'See first what would become of it. Then send it from the trunk: this step is done when a call has a record.',
    fields: [
      { name: 'from', label: 'From', value: '', pattern: NUMBER, hint: 'a number of the customer' },
      { name: 'to', label: 'To', value: '', pattern: NUMBER },
    ],
    requests: ({ from, to }) => [post('/telephony/simulate', { from, to })],
  },
]

/** As typed into a shell. */
export function curlOf({ method, path, body }: Request, origin: string): string {
  const json = JSON.stringify(body).replaceAll("'", String.raw`'\''`)
  return [
    `curl -X ${method} ${origin}/api/v1${path}`,
    `  -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json'`,
    `  -d '${json}'`,
  ].join(' \\\n')
}
