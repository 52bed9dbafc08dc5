/** The forms to which findings lead, and their texts for people. */
import { expect, test, vi } from 'vitest'
import type { Finding } from '../../../../../control/console/web/api/views.ts'

interface Words {
  adviceText(finding: Pick<Finding, 'advice'>): string
  handledText(finding: Pick<Finding, 'handled_by'>): string
  lastedText(finding: { opened_at: string; closed_at: string | null }, present: number): string
  stepOf(finding: Finding, context: { nodes: ReadonlyMap<string, object> }): object
}

// The router reads the address of the page. It needs the types of browsers, which tests lack.
vi.stubGlobal('location', { pathname: '/console/now', search: '' })
const file: string = '../../../../../control/console/web/screens/finding-words.ts'
const { adviceText, handledText, lastedText, stepOf } = (await import(file)) as Words

const finding = (more: Partial<Finding>): Finding => ({
  kind: 'node',
  severity: 'high',
  subject: '',
  what: '',
  first_at: '2026-01-01T00:00:00Z',
  last_at: '2026-01-01T00:00:00Z',
  figures: {},
  evidence: [],
  advice: '',
  next: { tool: 'explain_call', arguments: {} },
  first_step: null,
  handled_by: null,
  caused_by: null,
  ...more,
})

const step = (tool: string, args: object): Partial<Finding> => ({
  first_step: { tool, arguments: { ...args } },
})

const node = 'sip:10.0.0.3:5060;transport=udp'
const nodes = new Map([[node, { id: 7, name: 'office 3', full: 'office 3 (10.0.0.3:5060)' }]])

const acme = { subject: 'customer 3', what: 'customer 3 "Acme": …' }

test.each([
  [
    'spend on a prefix',
    {
      kind: 'destination' as const,
      ...acme,
      ...step('set_spend_guard', {
        customer: 3,
        prefix: '1900',
        action: 'block',
        duration: 86_400,
        reason: 'unusual spending of 16.50 USD',
      }),
    },
    'Set a spend guard for Acme on 1900',
    'spend-guards?scope=customer&who=3&prefix=1900&action=block&hours=24&reason=unusual+spending+of+16.50+USD&new=1',
  ],
  [
    'spend everywhere',
    {
      kind: 'spend' as const,
      ...acme,
      ...step('set_spend_guard', {
        customer: 3,
        prefix: '',
        action: 'cap',
        amount: 40,
        per: 'day',
      }),
    },
    'Set a spend guard for Acme',
    'spend-guards?scope=customer&who=3&action=cap&amount=40&per=day&hours=24&new=1',
  ],
  ['an empty wallet', { kind: 'wallet' as const, ...acme }, 'Top up Acme', 'customers/3?do=top-up'],
  [
    'the limit of a day',
    {
      kind: 'wallet' as const,
      ...acme,
      ...step('set_customer_limits', { customer: 3, max_daily_spend: '20.00' }),
    },
    'Raise the daily limit of Acme',
    'customers/3?max_daily_spend=20.00&do=change',
  ],
  [
    'a missing rate',
    {
      kind: 'rate' as const,
      subject: 'customer 3',
      what: 'customer 3 "Acme": 4 calls refused …: no rate for numbers that begin with "4930" (4).',
    },
    'Add a rate for 4930 to Acme',
    'customers/3?view=rates&prefix=4930&new=1',
  ],
  [
    'an unknown caller',
    {
      kind: 'unknown_callers' as const,
      subject: 'unknown_caller',
      what: '4 calls refused …: of the first, 4 from 10.0.0.1, such as caller "+15559990".',
    },
    'Give +15559990 to a customer',
    'numbers?number=%2B15559990&new=1',
  ],
  [
    'a key',
    {
      kind: 'key_use' as const,
      subject: 'key 6f96',
      what: 'key "ci" is used …',
      ...step('suspend_api_key', { identifier: '6f96', reason: 'unusual use of the key' }),
    },
    'Suspend key ci',
    'keys?reason=unusual+use+of+the+key&do=suspend&of=6f96',
  ],
  [
    'guessing',
    {
      kind: 'registration' as const,
      subject: 'extension "101@acme.example"',
      evidence: ['192.0.2.1', '192.0.2.2'],
    },
    'Ban these 2 addresses',
    'bans?address=192.0.2.1%2C+192.0.2.2&minutes=60&new=1',
  ],
  [
    'a silent node',
    {
      subject: `node ${node}`,
      ...step('set_dispatcher_state', { setId: 1, destination: node, state: 'inactive' }),
    },
    'Drain office 3',
    'nodes?do=drain&of=7',
  ],
  [
    'a node that was taken out',
    {
      subject: `node ${node}`,
      ...step('set_dispatcher_state', { setId: 1, destination: node, state: 'active' }),
    },
    'Take office 3 back',
    'nodes?do=take-back&of=7',
  ],
  [
    'the last node of a set',
    { subject: `node ${node}` },
    'See node office 3',
    'nodes?q=10.0.0.3%3A5060',
  ],
  [
    'a carrier',
    {
      kind: 'trunk' as const,
      subject: 'carrier "north"',
      ...step('set_trunk_state', { carrier: 4, state: 'inactive' }),
    },
    'Take north out of service',
    'carriers/4?is_active=0&do=change',
  ],
  [
    'a limit',
    {
      kind: 'capacity' as const,
      ...acme,
      ...step('set_customer_limits', { customer: 3, max_concurrent_calls: 4 }),
    },
    'Let Acme have 4 calls at once',
    'customers/3?max_concurrent_calls=4&do=change',
  ],
  [
    'a payment',
    {
      kind: 'payment' as const,
      subject: 'payment alert 9',
      what: 'payment "pi_1" of 25.00 EUR is not credited: "unknown".',
      figures: { alert: 9 },
    },
    'Assign the payment to a customer',
    'payments?do=assign&of=9',
  ],
])('%s leads to its form, filled in', (_, more: Partial<Finding>, text, path) => {
  expect(stepOf(finding(more), { nodes })).toEqual({ text, to: `/console/${path}` })
})

test('what was done is said as people say it, with who, when and why', () => {
  const change = {
    change_id: 'c',
    at: '2026-01-01T10:04:00Z',
    tool: 'set_spend_guard',
    by: 'user:Anna',
    reason: 'fraud',
    expires_at: null,
    seen_since: false,
  }
  const said = (more: object) =>
    handledText(finding({ handled_by: { ...change, ...more } })).replace(
      /at \S+( [AP]M)? with/,
      'at … with',
    )
  expect(said({})).toBe('Handled by user Anna at … with a spend guard: fraud.')
  expect(
    said({ tool: 'PATCH /api/v1/customers/:id', by: null, reason: null, seen_since: true }),
  ).toBe('Handled at … with a change of the customer. It has continued since.')
})

test.each([
  [
    'After the maintenance, put it back into service with set_dispatcher_state.',
    'After the maintenance, put it back into service with “Take back”.',
  ],
  [
    'Ask a person for the price: add_rate adds a rate to the plan, or propose_change proposes it.',
    'Ask for the price, and add it to the plan of rates.',
  ],
  [
    'raise its max_cps; a duration takes it back.',
    'Raise its limit of calls a second; a duration takes it back.',
  ],
])('advice names no tool: %s', (advice, text) => {
  expect(adviceText(finding({ advice }))).toBe(text)
})

test('how long a finding lasted is counted until it was closed, or until now', () => {
  const opened_at = '2026-01-01T10:00:00Z'
  const present = Date.parse('2026-01-01T12:00:05Z')
  expect(lastedText({ opened_at, closed_at: '2026-01-01T10:30:00Z' }, present)).toBe('30:00')
  expect(lastedText({ opened_at, closed_at: null }, present)).toBe('2:00:05')
})
