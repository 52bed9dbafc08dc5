import { expect, test } from 'vitest'
import type { Trace, TraceMessage } from '../../../schema/contracts/calls.ts'
import { openControl, startOfTime } from '../../support/control.ts'
import { addCustomer } from '../../support/books.ts'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pcapOf } from '../../../control/calls/pcap.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const uuid = '00000000-0000-4000-8000-000000000001'

const path = `/api/v1/calls/${uuid}/trace`

const trace: Trace = {
  tenantId: 1,
  legs: ['a-leg', 'b-leg'],
  peers: [
    { role: 'caller', name: '4930100', address: '10.0.0.8:5060' },
    { role: 'called', name: 'north', address: '10.0.0.9:5060' },
  ],
  isComplete: false,
  entries: [
    {
      kind: 'message',
      at: startOfTime,
      direction: 'received',
      leg: 'b-leg',
      transport: 'udp',
      address: '10.0.0.9:5060',
      text: 'BYE sip:x SIP/2.0\r\nVia: y\r\n\r\n',
    },
    {
      kind: 'decision',
      at: startOfTime + 1,
      what: 'charged',
      detail: { verdict: 'granted', grantedSeconds: 60 },
    },
  ],
}

test('a trace shows messages by leg and decisions by the words of the API', async () => {
  const control = await openControl()
  control.engine.trace = () => Promise.resolve(trace)
  const { data } = await control.request(path, { token: await control.key() })
  expect(data()).toEqual({
    call_uuid: uuid,
    legs: ['a-leg', 'b-leg'],
    peers: trace.peers,
    is_complete: false,
    entries: [
      {
        at: '2026-01-01T00:00:00.000Z',
        kind: 'message',
        direction: 'received',
        leg: 1,
        transport: 'udp',
        address: '10.0.0.9:5060',
        summary: 'BYE sip:x SIP/2.0',
        text: 'BYE sip:x SIP/2.0\r\nVia: y\r\n\r\n',
      },
      {
        at: '2026-01-01T00:00:00.001Z',
        kind: 'decision',
        what: 'charged',
        detail: { verdict: 'granted', granted_seconds: 60 },
      },
    ],
  })
})

test('what carriers charge is shown to the platform, not to its tenants', async () => {
  const control = await openControl()
  await control.tenant('acme')
  const prices = [{ carrier: 'north', price: '0.01' }]
  const routed = { kind: 'decision', at: startOfTime, what: 'routed' } as const
  const entries = [{ ...routed, detail: { direction: 'outbound', prices } }]
  control.engine.trace = () => Promise.resolve({ ...trace, entries })
  const shown = async (token: string) =>
    (await control.request(path, { token })).data<{ entries: { detail: object }[] }>().entries[0]
  const tenant = await control.key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' })
  expect((await shown(await control.key()))?.detail).toEqual({ direction: 'outbound', prices })
  expect((await shown(tenant))?.detail).toEqual({ direction: 'outbound' })
})

test("why the platform's own code has failed is told to the platform alone", async () => {
  const control = await openControl()
  await control.tenant('acme')
  const failed = '/etc/tollgate/hooks.ts:3: connect ECONNREFUSED 10.0.0.5:80'
  const asked = { kind: 'decision', at: startOfTime, what: 'hook' } as const
  const detail = { hook: 'onInvite', by: 'hooks.ts', decision: null, failed }
  const entries = [
    { ...asked, detail },
    { ...asked, detail: { ...detail, tenantId: 1 } },
    { ...asked, detail: { ...detail, failed: null } },
  ]
  control.engine.trace = () => Promise.resolve({ ...trace, entries })
  const told = async (token: string) => {
    const answer = await control.request(path, { token })
    const shown = answer.data<{ entries: { detail: { failed: string | null } }[] }>()
    return shown.entries.map((entry) => entry.detail.failed)
  }
  const tenant = await control.key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' })
  expect(await told(await control.key())).toEqual([failed, failed, null])
  expect(await told(tenant)).toEqual(['it has failed', failed, null])
})

const invite = [
  'REFER sip:x SIP/2.0',
  'From: <sip:a@x>;tag=fromTag',
  'To: <sip:b@x> ; TAG = toTag',
  'Replaces: a-leg;to-tag=toTag;from-tag=fromTag',
  'Refer-To: <sip:c@x?Replaces=a-leg%3Bto-tag%3DtoTag%3Bfrom-tag%3DfromTag>',
  '',
  '<dialog id="1" local-tag="toTag" remote-tag="fromTag">',
].join('\r\n')

// The tags by which a dialog is known would let the holder of a key write requests in it.
test('tags are shown to those that may control calls; others see which are equal', async () => {
  const control = await openControl()
  const message = { ...trace.entries[0], text: invite } as (typeof trace.entries)[number]
  control.engine.trace = () => Promise.resolve({ ...trace, entries: [message] })
  const shown = async (scopes: readonly string[], suffix: string): Promise<string> => {
    const token = await control.key({ scopes })
    return (await control.request(`${path}${suffix}`, { token })).text
  }
  for (const suffix of ['', '.pcap']) {
    expect(await shown(['calls:read', 'calls:control'], suffix)).toMatch(/fromTag.*toTag/s)
    const text = await shown(['calls:read'], suffix)
    expect(text).not.toMatch(/fromTag|toTag/)
    expect(text).toContain('Replaces: a-leg;to-tag=hidden-2;from-tag=hidden-1')
    expect(text).toContain('to-tag%3Dhidden-2%3Bfrom-tag%3Dhidden-1>')
  }
})

const charged = (customerId: number) => ({
  kind: 'decision' as const,
  at: startOfTime,
  what: 'charged',
  detail: { verdict: 'denied', customerId, balance: '0.00', available: '0.00', currency: 'USD' },
})

test('who may see customers is told which one was charged, and what it had', async () => {
  const control = await openControl()
  const tenant_id = await control.tenant('acme')
  const ours = await addCustomer(control.store, { name: 'ours', tenant_id })
  const platform = await addCustomer(control.store, { name: 'platform' })
  control.engine.trace = () =>
    Promise.resolve({ ...trace, tenantId: tenant_id, entries: [charged(ours), charged(platform)] })
  const shown = async (body: object) => {
    const answer = await control.request(path, { token: await control.key({ ...body }) })
    return answer.data<{ entries: { detail: object }[] }>().entries.map(({ detail }) => detail)
  }
  const money = { balance: '0.00', available: '0.00' }
  const of = (customer_id: number) => ({ verdict: 'denied', customer_id, currency: 'USD' })
  const [first, second] = [of(ours), of(platform)]
  expect(await shown({})).toEqual([
    { ...first, ...money, customer: 'ours' },
    { ...second, ...money, customer: 'platform' },
  ])
  const acme = { kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' }
  expect(await shown(acme)).toEqual([{ ...first, ...money, customer: 'ours' }, second])
  expect(await shown({ scopes: ['calls:read'] })).toEqual([first, second])
})

test('messages are given as a capture; of a call of another tenant there is none', async () => {
  const control = await openControl()
  await control.tenant('acme')
  await control.tenant('beta')
  control.engine.trace = () => Promise.resolve(trace)
  const capture = (token: string) => control.request(`${path}.pcap`, { token })
  const { status, headers } = await capture(await control.key({ scopes: ['calls:read'] }))
  expect(status).toBe(200)
  expect(headers.get('content-type')).toBe('application/vnd.tcpdump.pcap')
  expect(headers.get('content-disposition')).toBe(`attachment; filename="${uuid}.pcap"`)
  const beta = { kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'beta' }
  expect((await capture(await control.key(beta))).status).toBe(404)
  expect((await capture(await control.key({ scopes: ['cdrs:read'] }))).status).toBe(403)
})

const folder = temporaryFolder()

/** The fields of each packet as Wireshark's tshark reads them, checksums verified. */
function dissected(entries: readonly TraceMessage[]): string[][] {
  const file = join(folder, 'call.pcap')
  writeFileSync(file, pcapOf({ entries }))
  const verified = ['-o', 'udp.check_checksum:TRUE', '-o', 'ip.check_checksum:TRUE']
  const fields = ['frame.time_epoch', 'ip.src', 'ipv6.src', 'udp.srcport', 'ip.dst', 'ipv6.dst']
  const names = [...fields, 'udp.dstport', 'sip.Method', 'sip.Status-Code', '_ws.expert.message']
  const words = names.flatMap((name) => ['-e', name])
  const text = execFileSync(
    'tshark',
    ['-r', file, '-n', '-T', 'fields', '-E', 'separator=;', ...verified, ...words],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
  )
  return text
    .trimEnd()
    .split('\n')
    .map((line) => line.split(';'))
}

const head = 'Via: SIP/2.0/UDP 10.0.0.8:5060;branch=z9hG4bK1\r\nFrom: <sip:a@x>;tag=1\r\n'

const rest = 'To: <sip:b@x>\r\nCall-ID: a\r\nCSeq: 1 INVITE\r\nContent-Length: 0\r\n\r\n'

const message = (
  direction: TraceMessage['direction'],
  address: string,
  start: string,
  other: Partial<TraceMessage> = {},
): TraceMessage => ({
  kind: 'message',
  at: startOfTime + 1,
  direction,
  leg: 'a',
  transport: 'udp',
  address,
  text: `${start}\r\n${head}${rest}`,
  ...other,
})

const inviteLine = 'INVITE sip:b@x SIP/2.0'

test('each message is a SIP packet between the peer of its leg and us, at its time', () => {
  const packets = dissected([
    message('received', '10.0.0.8:5070', inviteLine),
    message('sent', '10.0.0.1:5080', 'SIP/2.0 486 Busy Here'),
    message('sent', '10.0.0.1:5080', inviteLine, { leg: 'b', at: startOfTime + 2_500 }),
  ])
  const at = (ms: number) => `${((startOfTime + ms) / 1_000).toFixed(3)}000000`
  const caller = ['10.0.0.8', '', '5070']
  const own = ['10.0.0.1', '', '5080']
  expect(packets.map((packet) => packet.slice(0, 9))).toEqual([
    [at(1), ...caller, ...own, 'INVITE', ''],
    [at(1), ...own, ...caller, '', '486'],
    // The peer of this leg has said nothing.
    [at(2_500), ...own, '0.0.0.0', '', '5060', 'INVITE', ''],
  ])
  expect(packets.flatMap((packet) => packet.slice(9)).join()).not.toMatch(/bad|illegal|malformed/i)
})

test('addresses of both families, names, streams and messages longer than a datagram are captured, too', () => {
  const long = `${inviteLine}\r\n${head}Subject: ${'x'.repeat(70_000)}\r\n${rest}`
  const packets = dissected([
    message('received', '[2001:db8::1]:5062', inviteLine, { transport: 'tcp' }),
    message('sent', '[2001:db8::1]:5062', 'SIP/2.0 200 OK', { transport: 'tcp' }),
    message('received', 'phone.example:5064', inviteLine, { leg: 'b' }),
    message('sent', '192.0.2.1:5060', long, { leg: 'c' }),
  ])
  expect(packets.map((packet) => packet.slice(1, 7))).toEqual([
    ['', '2001:db8::1', '5062', '', '::ffff:192.0.2.1', '5060'],
    ['', '::ffff:192.0.2.1', '5060', '', '2001:db8::1', '5062'],
    ['0.0.0.0', '', '5064', '192.0.2.1', '', '5060'],
    ['192.0.2.1', '', '5060', '0.0.0.0', '', '5060'],
  ])
})

test('a call without messages is an empty capture', () => {
  expect(pcapOf({ entries: [] })).toHaveLength(24)
})
