/** Rules about callers, from the API to the INVITE that the gateway of a carrier gets. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SimulationView } from '../../control/calls/simulate.ts'
import type { CdrView } from '../../control/reports/cdr-view.ts'
import { DigestPhone } from '../support/digest-phone.ts'
import { SipPeer } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, patientInstances } from '../support/waiting.ts'

const domain = 'acme.example'
const account = { user: '101', domain, password: 'a long password' }

let tollgate: TollgateProcess
let token: string
let phone: DigestPhone
let gateway: SipPeer

beforeAll(async () => {
  tollgate = await TollgateProcess.start({}, { ...patientInstances, DRAIN_SECONDS: '0' })
  token = await tollgate.createKey('--name', 'test', '--scopes', '*')
  phone = await DigestPhone.open(tollgate.listener(), account)
  gateway = await SipPeer.openPatient(tollgate.listener())
  await make('/tenants', { slug: 'acme', domains: [domain], numbers: ['4930'] })
  await make('/rate-plans', { name: 'retail', currency: 'USD' })
  await make('/rates', { rate_plan: 'retail', prefix: '1', rate_per_minute: 0.6 })
  await make('/customers', {
    name: 'acme',
    tenant: 'acme',
    rate_plan: 'retail',
    balance: '10.00',
    numbers: ['+4930100', '+4930101'],
    default_number: '+4930100',
  })
  await make('/pbx/extensions', {
    extension: '101',
    domain,
    display_name: 'Phone',
    password: account.password,
    customer: 'acme',
  })
  await make('/routing/carriers', {
    name: 'world',
    direction: 'out',
    caller_id: { mode: 'policy' },
    gateways: [{ host: '127.0.0.1', port: gateway.port }],
  })
  await make('/outbound-routes', { name: 'all', prefix: '1', carrier: 'world' })
}, 120_000)

afterAll(async () => {
  phone.close()
  gateway.close()
  await (tollgate as TollgateProcess | undefined)?.stop()
})

async function api<T>(method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  const answer = (await response.json()) as { data?: T }
  if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`)
  // Reports have no envelope.
  return answer.data ?? (answer as T)
}

const make = (path: string, body: object) => api<{ id: number }>('POST', path, body)

/** The caller that the gateway is shown, and the record of the call. */
async function shown(headers: readonly string[] = []) {
  const leg = await phone.call('18005551212', domain, headers)
  const invite = await gateway.next('INVITE')
  gateway.reply(invite, 486, { tag: 'g' })
  await phone.answerTo(leg)
  return { invite, record: await recordOf(leg.callId) }
}

const recordOf = (callId: string) =>
  eventually(async () => {
    const { records } = await api<{ records: readonly CdrView[] }>(
      'GET',
      '/reports/cdrs?start_date=2020-01-01&end_date=2100-01-01&limit=50',
    )
    const found = records.find(({ call_id: id }) => id === callId)
    if (found === undefined) throw new Error('there is no record yet')
    return found
  })

const prefers = (number: string) => [`P-Preferred-Identity: <tel:${number}>`]

test('the default number is shown, then the number of the extension, as soon as they are written', async () => {
  const first = await shown()
  expect(first.invite.get('From')).toMatch(/^"?Phone"? <sip:\+4930100@127/)
  expect(first.invite.get('P-Asserted-Identity')).toContain('<sip:+4930100@')
  const [attempt] = first.record.attempts
  expect(attempt?.presented).toEqual({
    number: '+4930100',
    asserted: '+4930100',
    attestation: 'A',
    why: 'the default number of the customer',
  })
  const [extension] = await api<readonly { id: number }[]>('GET', '/pbx/extensions/details')
  await api('PATCH', `/pbx/extensions/${extension?.id}`, { caller_number: '+4930101' })
  expect((await shown()).invite.get('From')).toContain('<sip:+4930101@')
  expect((await shown(prefers('+4930100'))).invite.get('From')).toContain('<sip:+4930100@')
  expect((await shown(prefers('+4999999'))).invite.get('From')).toContain('<sip:+4930101@')
})

test('a number that is not owned any more is not shown in the next call', async () => {
  const [customer] = await api<readonly { id: number }[]>('GET', '/customers')
  await api('PATCH', `/customers/${customer?.id}`, { numbers: ['+4930100'] })
  await api('PATCH', '/tenants/1', { numbers: [] })
  const { invite, record } = await shown()
  expect(invite.get('From')).toContain('<sip:+4930100@')
  expect(record.attempts[0]?.presented?.why).toBe(
    'the default number of the customer: +4930101 may not be presented',
  )
  await api('PATCH', '/tenants/1', { numbers: ['4930'] })
  expect((await shown()).invite.get('From')).toContain('<sip:+4930101@')
})

test('a call is refused by the rules of its carrier, and the simulator says so before', async () => {
  const [carrier] = await api<readonly { id: number }[]>('GET', '/routing/carriers')
  const rules = { caller_identity: { otherwise: 'refuse', present: 'default' } }
  await api('PATCH', `/routing/carriers/${carrier?.id}`, rules)
  const leg = await phone.call('18005551212', domain, prefers('+4999999'))
  expect((await phone.answerTo(leg)).status).toBe(403)
  const record = await recordOf(leg.callId)
  expect(record).toMatchObject({ sip_code: 403, denial_code: 'caller_id_forbidden' })
  expect(record.denial_text).toContain('+4999999 may not be presented')
  const own = await api<SimulationView>('POST', '/telephony/simulate', {
    source: `101@${domain}`,
    from: '101',
    to: '18005551212',
  })
  expect(own.candidates[0]?.presented).toEqual({
    number: '+4930100',
    asserted: '+4930100',
    private: false,
    attestation: 'A',
    why: 'the default number of the customer',
  })
})

test('a call from a number of a block is paid by the customer that owns the block', async () => {
  const block = { number: '+4930500', last_number: '+4930599', tenant: 'acme', customer: 'acme' }
  await make('/numbers', block)
  const [carrier] = await api<readonly { id: number }[]>('GET', '/routing/carriers')
  await api('PATCH', `/routing/carriers/${carrier?.id}`, {
    direction: 'both',
    payer: 'from_number',
  })
  const payer = async (number: string) => {
    const leg = gateway.leg('sip:18005551212@127.0.0.1')
    gateway.request('INVITE', { ...leg, from: `<sip:${number}@127.0.0.1>;tag=a` })
    return (await recordOf(leg.callId)).customer_id
  }
  const [customer] = await api<readonly { id: number }[]>('GET', '/customers')
  expect(await payer('+4930555')).toBe(customer?.id)
  expect(await payer('+4930600')).toBeNull()
})
