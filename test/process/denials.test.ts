// A refused caller, its operator and an agent read the same reason, also after a restart; a wrong
// domain is no wrong password.
import { beforeAll, afterAll, expect, onTestFinished, test } from 'vitest'
import { DigestPhone } from '../support/digest-phone.ts'
import { type PeerMessage, SipPeer } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually } from '../support/waiting.ts'

const domain = 'acme.example'
const outside = '15550100'
const blocked = '1900555'
const unknown = '4930123456'

const customer = (name: string, more: object = {}) => ({
  name,
  tenant: 'acme',
  rate_plan: 'retail',
  balance: '10.00',
  ...more,
})
const payers = {
  101: customer('broke', { balance: '0.001' }),
  102: undefined,
  103: customer('thrifty', { max_daily_spend: '0.005' }),
  104: customer('planless', { rate_plan: null }),
  105: customer('rich'),
  106: customer('asleep', { is_active: false }),
}

const seed = {
  tenants: [{ slug: 'acme', domains: [domain] }],
  rate_plans: [{ name: 'retail', currency: 'USD' }],
  rates: [
    { rate_plan: 'retail', prefix: '1', rate_per_minute: '0.60' },
    { rate_plan: 'retail', prefix: '1900', rate_per_minute: '0', blocked: true },
  ],
  customers: Object.values(payers).filter((payer) => payer !== undefined),
  extensions: Object.entries(payers).map(([extension, payer]) => ({
    tenant: 'acme',
    extension,
    password: `secret-${extension}`,
    display_name: `Phone ${extension}`,
    ...(payer && { customer: payer.name }),
  })),
  carriers: [{ name: 'trunk', direction: 'out', gateways: [{ host: '192.0.2.9', port: 5060 }] }],
  outbound_routes: [{ name: 'trunk', prefix: '1', carrier: 'trunk' }],
}

let tollgate: TollgateProcess
let token: string

beforeAll(async () => {
  // Loopback represents the internet.
  tollgate = await TollgateProcess.start(seed, { TRUSTED_SOURCES: '192.0.2.0/24' })
  token = await tollgate.createKey('--name', 'all', '--scopes', '*')
})
afterAll(() => tollgate.stop())

async function phoneOf(user: string, password: string, at = domain): Promise<DigestPhone> {
  const opened = await DigestPhone.open(tollgate.listener(), { user, domain: at, password })
  onTestFinished(() => opened.close())
  return opened
}

async function refusalOf(user: string, number: string): Promise<PeerMessage> {
  const phone = await phoneOf(user, `secret-${user}`)
  const leg = await phone.call(number)
  const answer = await phone.answerTo(leg)
  phone.peer.request('ACK', leg)
  return answer
}

/** The answer of the API, as data: an envelope is opened. */
async function ask<T>(path: string, body?: object): Promise<T> {
  const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
  })
  const read = (await answer.json()) as { data?: T }
  expect([path, answer.status]).toEqual([path, 200])
  return read.data ?? (read as T)
}

interface Denied {
  readonly call_uuid: string
  readonly denial_code: string | null
  readonly denial_text: string | null
}

async function recordOf(callUuid: string): Promise<Denied | undefined> {
  const period = 'start_date=2026-01-01&end_date=2100-01-01'
  const { records } = await ask<{ records: Denied[] }>(
    `/reports/cdrs?${period}&call_uuid=${callUuid}`,
  )
  return records[0]
}

/** The words of each of them about a call. */
async function said(callUuid: string): Promise<readonly (string | null | undefined)[]> {
  const status = await ask<Denied>(`/pbx/calls/${callUuid}`)
  const trace = await ask<{
    entries: { kind: string; what?: string; detail?: { denial_text?: string } }[]
  }>(`/calls/${callUuid}/trace`)
  const end = trace.entries.findLast(({ what }) => what === 'ended')
  const explained = await ask<{ explanation: string; record: Denied }>('/mcp/tools/explain_call', {
    call_uuid: callUuid,
  })
  const record = await recordOf(callUuid)
  const text = record?.denial_text ?? '?'
  const inExplanation = explained.explanation.includes(text) ? text : explained.explanation
  return [
    text,
    status.denial_text,
    end?.detail?.denial_text,
    explained.record.denial_text,
    inExplanation,
  ]
}

/** The words about each call before the restart. */
const denied = new Map<string, Awaited<ReturnType<typeof said>>>()

const insufficient = 'Payment Required - Insufficient Funds'

test.each([
  ['101', outside, 402, 'insufficient_funds', /has 0\.001 USD to spend.*takes 0\.01 USD.*: top up/],
  ['102', outside, 402, 'unknown_caller', /nobody pays.*: give the number to a customer/],
  ['103', outside, 402, 'daily_spend_limit', /max_daily_spend 0\.005 USD\): wait until 00:00 UTC/],
  ['104', outside, 402, 'no_rate', /has no rate plan\): add a rate/],
  ['105', blocked, 402, 'destination_blocked', /\(prefix 1900\): unblock/],
  ['106', outside, 402, 'customer_inactive', /inactive \(customer \d+\): activate/],
  ['105', unknown, 404, 'no_route', /No outbound route.*\(number 4930123456\): add an outbound/],
  [
    '105',
    '299',
    404,
    'unknown_extension',
    /No extension has the number.*\(extension 299\): create/,
  ],
  ['105', '102', 480, 'extension_unregistered', /registered: register a phone/],
])(
  'extension %s calls %s: %i, and %s in the answer, in the record and wherever it is shown',
  async (user, number, status, code, text) => {
    const before = tollgate.calls().length
    const answer = await refusalOf(user, number)
    expect(answer.status).toBe(status)
    if (status === 402) expect(answer.startLine).toBe(`SIP/2.0 402 ${insufficient}`)
    expect(answer.get('Warning')).toMatch(new RegExp(`^399 tollgate "${code}: [^"]{10,150}"$`))
    // Nothing of the wallet leaves by SIP.
    expect(answer.get('Warning')).not.toMatch(/USD|customer \d/)
    const call = await eventually(
      () => tollgate.calls()[before] ?? Promise.reject(new Error('none')),
    )
    expect(call.denial_code).toBe(code)
    // The record is read from the file, where it is before the disk and the program know (D530).
    const shown = await eventually(async () => {
      const all = await said(call.call_uuid)
      expect(all).toEqual(all.map(() => all[0]))
      return all
    })
    expect(shown[0]).toMatch(text)
    expect(tollgate.log.some((line) => line.includes(JSON.stringify(shown[0])))).toBe(true)
    denied.set(call.call_uuid, shown)
  },
)

test('after a restart all of them say the same as before', async () => {
  await tollgate.kill()
  await tollgate.restart()
  expect(denied.size).toBeGreaterThan(0)
  for (const [callUuid, shown] of denied) expect(await said(callUuid)).toEqual(shown)
})

test('a phone with a domain that no tenant has is told of in the log, counted as no wrong password and not banned', async () => {
  const strayed = await phoneOf('105', 'secret-105', 'wrong.example')
  for (let tries = 0; tries < 25; tries += 1) {
    strayed.learn(await strayed.register())
    const answer = await strayed.signOn()
    // As to a wrong password: nobody learns of domains by it.
    expect(answer.status).toBe(401)
  }
  const told = tollgate.log.filter((line) => line.includes('"wrong.example"'))
  expect(told).toHaveLength(1)
  expect(told[0]).toMatch(
    /a request names a SIP domain that no tenant has, so no password was checked/,
  )
  expect(await ask('/guard/bans')).toEqual([])
  const telemetry = await ask<object>('/metrics/telemetry')
  expect(JSON.stringify(telemetry)).toMatch(/"authentication_failures_total":0\b/)
  // The domain is put right.
  expect((await (await phoneOf('105', 'secret-105')).signOn()).status).toBe(200)
})

test('a call from such a domain gets the plain answer of strangers, and its record and the log name the domain', async () => {
  const stranger = await SipPeer.open(tollgate.listener())
  onTestFinished(() => stranger.close())
  const uri = `sip:${outside}@${domain}`
  const leg = { ...stranger.leg(uri), from: '<sip:105@astray.example>;tag=s', to: `<${uri}>` }
  const before = tollgate.calls().length
  stranger.request('INVITE', leg)
  const answer = await stranger.next((message) => message.status >= 200)
  expect([answer.status, answer.get('Warning')]).toEqual([403, ''])
  const call = await eventually(() => tollgate.calls()[before] ?? Promise.reject(new Error('none')))
  const record = await recordOf(call.call_uuid)
  expect(record?.denial_text).toMatch(/no tenant has the domain astray\.example/)
  expect(tollgate.log.some((line) => line.includes('"domain":"astray.example"'))).toBe(true)
})
