/** The steps to a first call, and the requests that they make. */

/** Which steps are done. */
export interface Setup {
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

export interface SetupStep {
  readonly name: keyof Setup
  readonly title: string
  readonly about: string
  /** A command for a shell that belongs to `about`. */
  readonly command?: string
  /** Where what it makes is seen. */
  readonly screen?: string
  readonly fields: readonly StepField[]
  readonly action: string
  readonly requests: (given: Readonly<Record<string, string>>) => readonly Request[]
}

const PORT = String.raw`\d{1,5}`
const NUMBER = String.raw`\+?\d{2,20}`
const MONEY = String.raw`\d{1,9}(\.\d{1,6})?`
const plan = 'retail'

const post = (path: string, body: object): Request => ({ method: 'POST', path, body })

export const steps: readonly SetupStep[] = [
  {
    name: 'node',
    title: 'Add a PBX node',
    action: 'Add the node',
    about:
      'A PBX or another SIP server that takes the calls. If you have none yet, run this ' +
      'beside Tollgate; it answers every call:',
    command: 'npx tollgate test-pbx',
    screen: 'nodes',
    fields: [
      { name: 'set', label: 'Name of its dispatcher set', value: 'pbx' },
      { name: 'host', label: 'Address', value: '127.0.0.1' },
      { name: 'port', label: 'Port', value: '5070', pattern: PORT },
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
    screen: 'rate-plans',
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
    screen: 'customers',
    action: 'Add the customer',
    about: 'Its wallet pays for calls from its numbers.',
    fields: [
      { name: 'name', label: 'Name', value: 'first customer' },
      { name: 'number', label: 'Its number', value: '+15550100', pattern: NUMBER },
      { name: 'balance', label: 'Opening balance', value: '10.00', pattern: MONEY },
    ],
    requests: ({ name, number, balance }) => [
      post('/customers', { name, rate_plan: plan, numbers: [number], balance }),
    ],
  },
  {
    name: 'call',
    title: 'Make the first call',
    action: 'Call',
    about:
      'Tollgate calls in the name of the customer, and hangs up five seconds after the ' +
      'answer. The call is routed, charged and recorded like any other.',
    fields: [
      {
        name: 'from',
        label: 'From',
        value: '+15550100',
        pattern: NUMBER,
        hint: 'a number of the customer',
      },
      { name: 'to', label: 'To', value: '+18005551212', pattern: NUMBER },
    ],
    requests: ({ from, to }) => [post('/telephony/test-call', { from, to })],
  },
]

/** Writes a request as a command that can be typed into a shell. */
export function curlOf({ method, path, body }: Request, origin: string): string {
  const json = JSON.stringify(body).replaceAll("'", String.raw`'\''`)
  return [
    `curl -X ${method} ${origin}/api/v1${path}`,
    `  -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json'`,
    `  -d '${json}'`,
  ].join(' \\\n')
}
