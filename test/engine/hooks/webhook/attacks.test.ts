/** What somebody can do who may write the URL of a webhook, or answers at it. */
import type { ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import { expect, test } from 'vitest'
import type { HookAnswer, InviteDecision } from '../../../../schema/contracts/hooks.ts'
import {
  deciding,
  hookCall,
  type Receiver,
  startReceiver,
  startRoutingWebhooks,
  webhookRecord,
} from '../../../support/routing-receiver.ts'
import { eventually } from '../../../support/waiting.ts'

/** A tenant's webhook where receivers may not be inside, and names mean what `addresses` says. */
async function askAsTenant(
  url: string,
  addresses: readonly string[] = [],
  isOwn?: (address: string) => boolean,
): Promise<HookAnswer<InviteDecision>> {
  const resolve = async () => addresses.map((address) => ({ address, family: isIP(address) }))
  const { webhooks } = await startRoutingWebhooks([webhookRecord({ url, tenantId: 7 })], {
    allowPrivate: false,
    resolve,
    ...(isOwn !== undefined && { isOwn }),
  })
  return webhooks.ask('onInvite', hookCall({ tenantId: 7 }))
}

const portOf = ({ url }: Receiver): string => new URL(url).port

const inside = expect.objectContaining({
  kind: 'failed',
  why: expect.stringMatching(/private address|no single host|not a single host/) as string,
}) as unknown

test.each([
  '127.0.0.1',
  '127.1',
  '127.0.0.1.',
  '2130706433',
  '0x7f.1',
  '0177.0.0.1',
  '１２7.0.0.1',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '0.0.0.0',
  '10.0.0.1',
  '169.254.169.254',
  '[fd00:ec2::254]',
  '[fe80::1]',
  '[fc00::1]',
])('a receiver at %s is not connected to', async (host) => {
  const receiver = await startReceiver(deciding({ record: true }))
  const url = `http://${host}:${portOf(receiver)}/`
  expect(await askAsTenant(url)).toEqual(inside)
  expect(receiver.connections()).toBe(0)
})

test.each([
  ['localhost', ['127.0.0.1']],
  ['localhost.', ['127.0.0.1']],
  ['rebound.example', ['127.0.0.1']],
  ['mixed.example', ['192.88.98.1', '127.0.0.1']],
  ['mapped.example', ['::ffff:127.0.0.1']],
  ['metadata.example', ['169.254.169.254']],
  ['everywhere.example', ['0.0.0.0']],
])('a name such as %s that leads to %j is not connected to', async (name, addresses) => {
  const receiver = await startReceiver(deciding({ record: true }))
  expect(await askAsTenant(`http://${name}:${portOf(receiver)}/`, addresses)).toEqual(inside)
  expect(receiver.connections()).toBe(0)
})

test('a name is judged again at each connection', async () => {
  const receiver = await startReceiver((response) => {
    response.setHeader('connection', 'close')
    deciding({ record: true })(response)
  })
  const answers = ['127.0.0.1', '0.0.0.0']
  const url = `http://rebinding.example:${portOf(receiver)}/`
  const { webhooks } = await startRoutingWebhooks([webhookRecord({ url })], {
    resolve: async () => [{ address: answers.shift() ?? '', family: 4 }],
  })
  expect((await webhooks.ask('onInvite', hookCall())).kind).toBe('decided')
  expect(await webhooks.ask('onInvite', hookCall())).toEqual(inside)
  expect([answers.length, receiver.connections()]).toEqual([0, 1])
})

test('a public address of this installation is inside, too', async () => {
  const isOwn = (address: string): boolean => address === '8.8.8.8'
  expect(await askAsTenant('http://8.8.8.8:8080/', [], isOwn)).toEqual(inside)
  expect(await askAsTenant('http://own.example:8080/', ['8.8.8.8'], isOwn)).toEqual(inside)
})

test('the platform may allow receivers inside', async () => {
  const receiver = await startReceiver(deciding({ record: true }))
  const url = `http://crm.example:${portOf(receiver)}/`
  const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
  const { webhooks } = await startRoutingWebhooks([webhookRecord({ url })], { resolve })
  expect((await webhooks.ask('onInvite', hookCall())).kind).toBe('decided')
})

/** One question to a receiver on loopback that answers so, within 150 ms. */
async function asked(
  answer: (response: ServerResponse) => void,
): Promise<{ readonly why: string; readonly ms: number; readonly receiver: Receiver }> {
  const receiver = await startReceiver(answer)
  const record = webhookRecord({ url: receiver.url, timeoutMs: 150 })
  const { webhooks } = await startRoutingWebhooks([record])
  const since = performance.now()
  const result = await webhooks.ask('onInvite', hookCall())
  const ms = performance.now() - since
  return { why: result.kind === 'failed' ? result.why : result.kind, ms, receiver }
}

test.each([301, 302, 303, 307, 308])('a redirect by %i is not followed', async (status) => {
  const inner = await startReceiver(deciding({ record: true }))
  const { why } = await asked((response) =>
    response.writeHead(status, { location: inner.url }).end(),
  )
  expect(why).toBe(`status ${status}: redirects are not followed`)
  expect(inner.connections()).toBe(0)
})

const json = { 'content-type': 'application/json' }

test.each<[string, (response: ServerResponse) => void]>([
  ['never', () => undefined],
  ['with a status and no body', (response) => response.writeHead(200, json).flushHeaders()],
  [
    'with half of a body',
    (response) => response.writeHead(200, { ...json, 'content-length': '10' }).write('{'),
  ],
  [
    'byte by byte',
    (response) => {
      response.writeHead(200, json)
      const timer = setInterval(() => response.write(' '), 5)
      response.on('close', () => clearInterval(timer))
    },
  ],
  [
    'with interim answers only',
    (response) => {
      const timer = setInterval(() => response.writeProcessing(), 5)
      response.on('close', () => clearInterval(timer))
    },
  ],
])('a receiver that answers %s holds a call no longer than its limit', async (_, answer) => {
  const { why, ms, receiver } = await asked(answer)
  expect(why).toBe('no answer within 150 ms')
  expect(ms).toBeGreaterThan(140)
  // The machine of a test may be late; the receiver would wait for ever.
  expect(ms).toBeLessThan(1_000)
  await eventually(async () => {
    const open = await new Promise<number>((resolve) =>
      receiver.server.getConnections((_error, count) => resolve(count)),
    )
    expect(open).toBe(0)
  })
})

const tooLong = 'the answer is longer than 65536 bytes'

test('a long answer is read up to 64 kB', async () => {
  const announced = await asked((response) =>
    response.writeHead(200, { ...json, 'content-length': '65537' }).flushHeaders(),
  )
  expect(announced.why).toBe(tooLong)
  let sent = 0
  const endless = await asked((response) => {
    response.writeHead(200, json)
    const more = (): void => {
      while (!response.destroyed && response.write(' '.repeat(16_384))) sent += 16_384
    }
    response.on('drain', more)
    more()
  })
  expect(endless.why).toBe(tooLong)
  expect(sent).toBeLessThan(16_000_000)
})

test('long headers, another protocol, and an answer that is cut off are failures', async () => {
  const long = await asked((response) => {
    response.socket?.end(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(100_000)}\r\n\r\n`)
  })
  expect(long.why).toContain('Header overflow')
  const upgraded = await asked((response) => {
    response.socket?.end('HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n')
  })
  expect(upgraded.why).toBe('the answer changes the protocol')
  const cut = await asked((response) => {
    response.socket?.end(
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{',
    )
  })
  expect(cut.why).toMatch(/aborted|cut off/)
})

test.each([
  { headers: { 'X-Note': 'a\r\nRoute: <sip:evil.example>' } },
  { headers: { 'X-Note\r\nRoute': 'a' } },
  { headers: { Route: '<sip:evil.example>' } },
  { headers: { 'P-Asserted-Identity': '<sip:1@evil.example>' } },
  { fromName: 'a\r\nRoute: <sip:evil.example>' },
  { refuse: { status: 486, reason: 'Busy\r\nContact: <sip:evil.example>' } },
  { refuse: { status: 200 } },
  { refuse: { status: 401 } },
  { tags: { note: 'a\nb' } },
  { uri: 'sip:1@evil.example?Route=%3Csip:evil.example%3E' },
  { uri: 'http://127.0.0.1/' },
  { set: 1, uri: 'sip:1@evil.example' },
  { customer: 1 },
  { customer_id: 1 },
  { tenantId: null },
  { price: 0 },
])('an answer of %j is refused as a whole', async (decision) => {
  const { why } = await asked(deciding(decision))
  expect(why).toContain('the answer of onInvite')
})

test('line breaks in a call are no headers of the request', async () => {
  const receiver = await startReceiver(deciding({ record: true }))
  const { webhooks } = await startRoutingWebhooks([webhookRecord({ url: receiver.url })])
  const fromName = 'a\r\nX-Evil: 1'
  await webhooks.ask('onInvite', hookCall({ fromName, headers: { 'x-a': fromName } }))
  expect(receiver.questions[0]?.headers).not.toHaveProperty('x-evil')
  expect(JSON.parse(receiver.questions[0]?.body ?? '')).toMatchObject({ fromName })
})

test('a tenant is told neither credentials, nor who has sent a call that is not of its own', async () => {
  const receiver = await startReceiver(deciding({ record: true }))
  const { webhooks } = await startRoutingWebhooks([
    webhookRecord({ url: receiver.url, tenantId: 7 }),
  ])
  const source = { kind: 'carrier', id: 3, name: 'transit', tenantId: null } as const
  const headers = {
    authorization: 'Digest x',
    'proxy-authorization': 'Digest x',
    via: 'SIP/2.0/UDP transit.example',
    'x-crm': 'gold',
  }
  await webhooks.ask(
    'onInvite',
    hookCall({
      tenantId: 7,
      source: { ...hookCall().source, ...source },
      carrier: { id: 3, name: 'transit' },
      headers,
    }),
  )
  const { body = '' } = receiver.questions[0] ?? {}
  expect(body).not.toMatch(/transit|Digest|198\.51\.100\.7"/)
  expect(JSON.parse(body)).toMatchObject({ headers: { 'x-crm': 'gold' }, from: '4930100' })
})

test('one receiver that is slow takes 200 requests at once; further calls go on at once', async () => {
  const waiting: ServerResponse[] = []
  const receiver = await startReceiver((response) => waiting.push(response))
  const url = receiver.url
  const { webhooks } = await startRoutingWebhooks([
    webhookRecord({ url, tenantId: 7 }),
    webhookRecord({ id: 2, url, tenantId: 8 }),
  ])
  const first = Array.from({ length: 200 }, () =>
    webhooks.ask('onInvite', hookCall({ tenantId: 7 })),
  )
  expect(await webhooks.ask('onInvite', hookCall({ tenantId: 7 }))).toMatchObject({
    kind: 'failed',
    why: 'too many requests at once',
  })
  const other = webhooks.ask('onInvite', hookCall({ tenantId: 8 }))
  await eventually(() => expect(waiting).toHaveLength(201))
  for (const response of waiting) deciding({ record: true })(response)
  const kinds = new Set((await Promise.all([...first, other])).map(({ kind }) => kind))
  expect([...kinds]).toEqual(['decided'])
})
