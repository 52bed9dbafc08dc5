/** Which number the gateway of a carrier is shown, by the rules of pairs of sources. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { CallerIdRule } from '../../../../engine/routing/routing-records.ts'
import { numbersOf, RiggedRules, type RulesOf } from '../../../support/caller-rules.ts'
import { startCallRig, type CallRig } from '../../../support/call-rig.ts'
import { sdp } from '../../../support/sip-peer.ts'
import { carrierOf, extensionRecord } from '../steps.ts'

let rig: CallRig
let rigged: RiggedRules

beforeEach(async () => {
  rigged = new RiggedRules()
  rig = await startCallRig({ identities: rigged.identities })
})
afterEach(() => rig.stop())

const { own, main, other, inactive, tenants, colleagues, listed, strangers } = numbersOf
const anonymous = '<sip:anonymous@anonymous.invalid>'

interface Row {
  /** Phone 101, or a node of set 1, which both are at the expense of customer 7. */
  readonly by: 'phone' | 'node'
  readonly from?: string
  readonly headers?: readonly string[]
  readonly rules: RulesOf
  readonly mode?: CallerIdRule['mode']
  readonly has?: { readonly own?: string; readonly main?: string }
  /** The user of From, or a refusal. */
  readonly shown: string
  /** The number in P-Asserted-Identity; null: there is none. Absent: as `shown`. */
  readonly asserted?: string | null
  readonly privacy?: string
}

const ppi = (number: string): readonly string[] => [
  `P-Preferred-Identity: "Sales" <sip:${number}@x.example>`,
]
const pai = (number: string): readonly string[] => [
  `P-Asserted-Identity: "Sales" <sip:${number}@x.example>`,
]
const hidden = { shown: 'anonymous', privacy: 'id' } as const
const refused = { shown: '403' } as const
const ext = (rules: RulesOf['extension'] = {}): RulesOf => ({ extension: rules })
const list = { allowed: 'list', numbers: ['4940'] } as const

/** What a phone shows. */
const phones: readonly Omit<Row, 'by'>[] = [
  // Without rules, the mode alone asks: own numbers only, replaced otherwise.
  { rules: {}, shown: own },
  { rules: {}, has: { main }, shown: main },
  { rules: {}, has: {}, ...hidden, asserted: null },
  { rules: {}, has: { own: strangers }, shown: 'anonymous', privacy: 'id', asserted: null },
  { rules: {}, has: { own: inactive, main }, shown: main },
  { rules: {}, has: { own: colleagues, main }, shown: main },
  { rules: {}, has: { own: tenants }, shown: tenants },
  { rules: {}, has: { own: listed }, shown: listed },
  { rules: {}, headers: ppi(other), shown: other },
  { rules: {}, headers: ppi(tenants), shown: tenants },
  { rules: {}, headers: ppi(listed), shown: listed },
  { rules: {}, headers: ppi(colleagues), shown: own },
  { rules: {}, headers: ppi(inactive), shown: own },
  { rules: {}, headers: ppi(strangers), shown: own },
  { rules: {}, headers: ppi('101'), shown: own },
  { rules: {}, headers: [`P-Preferred-Identity: <sip:x@y>, <tel:${other}>`], shown: other },
  // A phone asserts nothing.
  { rules: {}, headers: pai(other), shown: own },
  { rules: {}, headers: pai(strangers), shown: own },
  { rules: {}, headers: [`Remote-Party-ID: <sip:${strangers}@x>;party=calling`], shown: own },
  { rules: {}, headers: [`Diversion: <sip:${other}@x>;reason=no-answer`], shown: own },
  // Each number that may be presented.
  { rules: ext({ present: 'extension' }), shown: '101' },
  { rules: ext({ present: 'default' }), shown: main },
  { rules: ext({ present: 'default' }), has: { own }, shown: own },
  {
    rules: ext({ present: 'default', otherwise: 'anonymous' }),
    has: { own },
    ...hidden,
    asserted: own,
  },
  { rules: ext({ present: 'as_sent' }), shown: own },
  { rules: ext({ present: 'as_sent' }), headers: ppi(other), shown: other },
  { rules: ext({ present: 'as_sent', allowed: 'any' }), has: {}, shown: '101' },
  { rules: ext({ present: 'as_sent', allowed: 'any' }), headers: ppi(strangers), shown: strangers },
  // What becomes of others.
  { rules: ext({ otherwise: 'anonymous' }), headers: ppi(strangers), ...hidden, asserted: own },
  { rules: ext({ otherwise: 'refuse' }), headers: ppi(strangers), ...refused },
  { rules: ext({ otherwise: 'refuse' }), headers: ppi(colleagues), ...refused },
  { rules: ext({ otherwise: 'refuse' }), headers: ppi(other), shown: other },
  { rules: ext({ otherwise: 'refuse' }), shown: own },
  { rules: ext({ otherwise: 'refuse' }), has: {}, ...refused },
  // Pairs: the extension comes before the customer, and that before the carrier.
  {
    rules: { ...ext({ present: 'extension' }), customer: { present: 'default' } },
    shown: '101',
  },
  { rules: { customer: { present: 'default' }, carrier: { present: 'extension' } }, shown: main },
  { rules: { carrier: { present: 'extension' } }, shown: '101' },
  {
    rules: { ...ext({ otherwise: 'refuse' }), carrier: { otherwise: 'replace' } },
    headers: ppi(strangers),
    ...refused,
  },
  {
    rules: { ...ext({ otherwise: 'replace' }), customer: { otherwise: 'refuse' } },
    headers: ppi(strangers),
    shown: own,
  },
  {
    rules: { customer: list, carrier: { otherwise: 'refuse' } },
    headers: ppi('+4940123'),
    shown: '+4940123',
  },
  {
    rules: { customer: list, carrier: { otherwise: 'refuse' } },
    headers: ppi(strangers),
    ...refused,
  },
  {
    rules: { customer: { allowed: 'owned' }, carrier: { allowed: 'any' } },
    headers: ppi(strangers),
    shown: own,
  },
  { rules: { carrier: { allowed: 'any' } }, headers: ppi(strangers), shown: strangers },
  {
    rules: { ...ext({ allowed: 'owned' }), customer: { allowed: 'any', otherwise: 'refuse' } },
    headers: ppi(strangers),
    ...refused,
  },
  // A list that is not allowed says nothing.
  { rules: { customer: { numbers: ['4940'] } }, headers: ppi('+4940123'), shown: own },
  // Privacy.
  { rules: {}, headers: ['Privacy: id'], ...hidden, asserted: own },
  { rules: {}, headers: ['Privacy: user'], ...hidden, asserted: own },
  { rules: {}, headers: ['Privacy: header'], ...hidden, asserted: own },
  {
    rules: {},
    headers: ['Privacy: id;critical'],
    shown: 'anonymous',
    privacy: 'id;critical',
    asserted: own,
  },
  { rules: {}, headers: ['Privacy: none'], shown: own, privacy: 'none' },
  { rules: {}, from: anonymous, ...hidden, asserted: own },
  { rules: {}, from: anonymous, headers: ['Privacy: none'], ...hidden, asserted: own },
  { rules: {}, headers: [...ppi(other), 'Privacy: id'], ...hidden, asserted: other },
  { rules: ext({ otherwise: 'refuse' }), headers: [...ppi(strangers), 'Privacy: id'], ...refused },
  // Modes: P-Asserted-Identity is written where the carrier wants it.
  { rules: ext(), mode: 'pass', shown: own, asserted: null },
  { rules: ext(), mode: 'pai', shown: own },
  { rules: ext({ present: 'extension' }), mode: 'pai', shown: '101' },
  { rules: ext(), mode: 'fixed', headers: ppi(strangers), shown: '4989000', asserted: null },
  {
    rules: ext({ otherwise: 'refuse' }),
    mode: 'fixed',
    headers: ppi(strangers),
    shown: '4989000',
    asserted: null,
  },
]

const from = (number: string): string => `"Desk" <sip:${number}@pbx.example>`

/** What a node of the tenant shows. */
const nodes: readonly Omit<Row, 'by'>[] = [
  { rules: {}, from: from(other), shown: other },
  { rules: {}, from: from('4930102'), shown: '4930102' },
  { rules: {}, from: from('201'), shown: main },
  { rules: {}, from: from(colleagues), shown: main },
  { rules: {}, from: from(strangers), shown: main },
  { rules: {}, from: from('reception'), shown: main },
  { rules: {}, from: from('201'), headers: pai(other), shown: other },
  { rules: {}, from: from(other), headers: pai(strangers), shown: main },
  {
    rules: {},
    from: from('201'),
    headers: [`P-Asserted-Identity: <sip:x@y>, "Sales" <tel:${other}>`],
    shown: other,
  },
  {
    rules: {},
    from: from('201'),
    headers: [`P-Asserted-Identity: <sips:x@y>`, `P-Asserted-Identity: <tel:${tenants}>`],
    shown: tenants,
  },
  { rules: {}, from: from('201'), headers: ppi(other), shown: main },
  { rules: {}, from: anonymous, headers: pai(other), ...hidden, asserted: other },
  { rules: {}, from: anonymous, headers: pai(strangers), ...hidden, asserted: main },
  { rules: {}, from: anonymous, ...hidden, asserted: main },
  { rules: {}, from: '<sip:anonymous@10.0.0.1>', ...hidden, asserted: main },
  { rules: { dispatcher_set: { present: 'extension' } }, from: from('201'), shown: '201' },
  { rules: { dispatcher_set: { present: 'extension' } }, from: from(strangers), shown: main },
  {
    rules: { dispatcher_set: { present: 'as_sent', otherwise: 'refuse' } },
    from: from('201'),
    ...refused,
  },
  { rules: { dispatcher_set: { otherwise: 'refuse' } }, from: from('201'), shown: main },
  { rules: { dispatcher_set: { otherwise: 'refuse' } }, from: from(strangers), ...refused },
  { rules: { dispatcher_set: { allowed: 'any' } }, from: from(strangers), shown: strangers },
  {
    rules: { customer: { allowed: 'owned' }, dispatcher_set: { allowed: 'any' } },
    from: from(strangers),
    shown: main,
  },
  {
    rules: { dispatcher_set: list, carrier: { otherwise: 'refuse' } },
    from: from('+49401'),
    shown: '+49401',
  },
  {
    rules: { dispatcher_set: { present: 'default' }, carrier: { present: 'as_sent' } },
    from: from('201'),
    shown: main,
  },
  // The node says that it forwards: the number that does so is shown, if it is an own one.
  {
    rules: {},
    from: from(strangers),
    headers: [`Diversion: <sip:${other}@x>;reason=no-answer`],
    shown: other,
  },
  { rules: {}, from: from(strangers), headers: [`Diversion: <sip:${colleagues}@x>`], shown: main },
]

const table: readonly Row[] = [
  ...phones.map((row) => ({ by: 'phone', ...row }) as const),
  ...nodes.map((row) => ({ by: 'node', ...row }) as const),
]

const titled = table.map((row, index) => [`${index + 1}: ${titleOf(row)}`, row] as const)

function titleOf({ by, from: sent, headers = [], rules, mode, shown }: Row): string {
  const asked = [sent ?? '', ...headers].join(' ')
  return `${by} ${JSON.stringify(rules)} ${mode ?? ''} ${asked}: ${shown}`
}

test('the table has at least 60 rows', () => {
  expect(table.length).toBeGreaterThanOrEqual(60)
})

test.each(titled)('%s', async (_, row) => {
  const { by, headers = [], rules, mode = 'policy', has, shown, asserted = shown, privacy } = row
  rigged.rules = rules
  if (has) {
    rigged.callerNumber = has.own
    rigged.defaultNumber = has.main
  }
  const caller = { extension: extensionRecord('101') }
  if (by === 'phone') rig.answers.caller = { kind: 'extension', ...caller }
  else rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1, tenantId: 3 }
  const carrier = await carrierOf(rig, {
    callerId: { mode, value: mode === 'fixed' ? '4989000' : null },
  })
  const peer = await rig.caller()
  const sent = row.from ?? '"Mallory" <sip:101@acme.example>'
  const leg = { ...peer.leg(rig.uri('1555')), from: `${sent};tag=a` }
  peer.request('INVITE', leg, { headers, body: sdp('offer') })
  if (shown === '403') {
    expect((await peer.next('403 INVITE')).get('Warning')).toContain('may not present')
    expect(await rig.record()).toMatchObject({ denialCode: 'caller_id_forbidden', sipCode: 403 })
    expect(carrier.inbox).toEqual([])
    return
  }
  const invite = await carrier.next('INVITE')
  carrier.reply(invite, 486)
  await peer.next('486 INVITE')
  const host = shown === 'anonymous' ? 'anonymous\\.invalid' : '127\\.0\\.0\\.1'
  const user = shown.replace('+', '\\+')
  expect(invite.get('From')).toMatch(new RegExp(`<sip:${user}@${host}`))
  const identity = invite.get('P-Asserted-Identity') ?? ''
  if (asserted === null) expect(identity).toBe('')
  else expect(/<sip:([^@]*)@/.exec(identity)?.[1]).toBe(asserted)
  expect(invite.get('Privacy')).toBe(privacy ?? '')
  for (const name of ['Remote-Party-ID', 'P-Preferred-Identity', 'Diversion', 'History-Info'])
    expect(invite.get(name)).toBe('')
  const [attempt] = (await rig.record()).attempts
  expect(attempt?.presented).toMatchObject({ number: shown === 'anonymous' ? '' : shown })
  expect(attempt?.presented?.why).not.toBe('')
})
