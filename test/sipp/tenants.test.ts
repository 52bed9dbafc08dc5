/** Two tenants on raw sockets: parallel forking, voicemail, ownership of sets, and the guard against unknown sources. */
import { afterEach, expect, test, vi } from 'vitest'
import { DigestPhone } from '../support/digest-phone.ts'
import { sdp, SipPeer } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, patienceMs, patientNodes } from '../support/waiting.ts'

const domains = { acme: 'acme.example', rival: 'rival.example' } as const

let tollgate: TollgateProcess
let peers: { close(): void }[] = []

afterEach(async () => {
  for (const peer of peers) peer.close()
  peers = []
  await tollgate.stop()
})

/** Loopback is not trusted here: it represents the internet. The only set belongs to `acme`. */
async function start(environment: Readonly<Record<string, string>> = {}): Promise<SipPeer> {
  // The node needs a port before Tollgate has one; it only answers.
  const place = { address: '127.0.0.1', port: 9 }
  const node = await SipPeer.openPatient({
    protocol: 'udp',
    ...place,
    advertisedHost: place.address,
    advertisedPort: place.port,
  })
  peers.push(node)
  tollgate = await TollgateProcess.start(
    {
      tenants: Object.entries(domains).map(([slug, domain]) => ({ slug, domains: [domain] })),
      extensions: Object.keys(domains).flatMap((tenant) =>
        ['101', '102'].map((extension) => ({
          tenant,
          extension,
          password: `secret-${extension}`,
          display_name: extension,
        })),
      ),
      dispatcher: [
        {
          endpoint_name: 'pbx',
          set_id: 1,
          algorithm: 8,
          tenant: 'acme',
          voicemail_uri: `sip:box@127.0.0.1:${node.port}`,
          nodes: [{ host: '127.0.0.1', internal_port: node.port }],
        },
      ],
    },
    { ...patientNodes, TRUSTED_SOURCES: '192.0.2.0/24', UNKNOWN_CALLER: 'allow', ...environment },
  )
  return node
}

async function phone(
  user: string,
  domain: string = domains.acme,
  password = `secret-${user}`,
): Promise<DigestPhone> {
  const opened = await DigestPhone.open(tollgate.listener(), { user, domain, password })
  peers.push(opened)
  return opened
}

test('all phones of an extension ring; the first answer wins, the others hear who took the call', async () => {
  await start()
  const [desk, mobile, caller] = [await phone('101'), await phone('101'), await phone('102')]
  for (const each of [desk, mobile]) expect((await each.signOn()).status).toBe(200)
  const leg = await caller.call('101')
  const [atDesk, atMobile] = [await desk.peer.next('INVITE'), await mobile.peer.next('INVITE')]
  desk.peer.reply(atDesk, 180, { tag: 'desk' })
  mobile.peer.reply(atMobile, 200, { tag: 'mobile', body: sdp('answer') })
  const cancel = await desk.peer.next('CANCEL')
  expect(cancel.get('Reason')).toMatch(/SIP\s*;\s*cause=200/)
  desk.peer.reply(cancel, 200)
  desk.peer.reply(atDesk, 487, { tag: 'desk' })
  const answer = await caller.answerTo(leg)
  expect(answer.status).toBe(200)
  caller.peer.learn(leg, answer)
  caller.peer.request('ACK', leg)
  await mobile.peer.next('ACK')
  caller.peer.request('BYE', leg)
  mobile.peer.reply(await mobile.peer.next('BYE'), 200)
  expect(await tollgate.waitForCalls(1)).toMatchObject([
    { disposition: 'ANSWERED', direction: 'internal', cost_micros: 0 },
  ])
})

test('an unanswered call goes to the voicemail of the tenant, with the extension in Diversion', async () => {
  const node = await start()
  const [callee, caller] = [await phone('101'), await phone('102')]
  expect((await callee.signOn()).status).toBe(200)
  const leg = await caller.call('101')
  callee.peer.reply(await callee.peer.next('INVITE'), 486, { tag: 'callee' })
  const recorded = await node.next('INVITE')
  expect(recorded.uri).toBe(`sip:box@127.0.0.1:${node.port}`)
  expect(recorded.get('Diversion')).toContain(`<sip:101@${domains.acme}>`)
  node.reply(recorded, 200, { tag: 'box', body: sdp('answer') })
  const answer = await caller.answerTo(leg)
  expect(answer.status).toBe(200)
  caller.peer.learn(leg, answer)
  caller.peer.request('ACK', leg)
  caller.peer.request('BYE', leg)
  node.reply(await node.next('BYE'), 200)
  expect(await tollgate.waitForCalls(1)).toMatchObject([{ disposition: 'ANSWERED' }])
})

test('a phone of another tenant reaches neither the set nor the extensions of the tenant', async () => {
  const node = await start()
  const [own, stranger] = [await phone('102'), await phone('102', domains.rival)]
  const leg = await own.call('5550100')
  node.reply(await node.next('INVITE'), 486, { tag: 'n' })
  expect((await own.answerTo(leg)).status).toBe(486)
  const refused = await stranger.call('5550100')
  expect((await stranger.answerTo(refused)).status).toBe(404)
  const home = await phone('101')
  expect((await home.signOn()).status).toBe(200)
  const knock = await stranger.call('101')
  expect((await stranger.answerTo(knock)).status).toBe(480)
  expect(node.inbox.filter(({ method }) => method === 'INVITE')).toEqual([])
  expect(home.peer.inbox).toEqual([])
})

test('an expired nonce is stale, and the phone continues with the next one', async () => {
  await start({ SIP_NONCE_SECONDS: '2' })
  const own = await phone('101')
  /** How many times one nonce was good. */
  const useUp = async (): Promise<number> => {
    let [answer, used] = [await own.signOn(), 0]
    for (; answer.status === 200 && used < 100_000; used += 1) answer = await own.signOn()
    expect([answer.status, answer.get('WWW-Authenticate').includes('stale=true')]).toEqual([
      401,
      true,
    ])
    own.learn(answer)
    return used
  }
  // The machine may stand still for as long as a nonce is good.
  await eventually(async () => expect(await useUp()).toBeGreaterThan(1))
  await eventually(async () => {
    const answer = await own.signOn()
    if (answer.status === 401) own.learn(answer)
    expect(answer.status).toBe(200)
  })
  expect(tollgate.query('SELECT 1 FROM binding')).toHaveLength(1)
})

test('guards count dropped packets, list bans, and an operator can lift a ban', async () => {
  await start()
  // At an address of its own: those of nodes of the platform are not shut out.
  const at = '127.0.0.3'
  const listener = { ...tollgate.listener(), advertisedHost: at }
  const account = { user: '101', domain: domains.acme, password: 'guess-guess' }
  const guesser = await DigestPhone.open(listener, account)
  peers.push(guesser)
  guesser.peer.request('REGISTER', guesser.leg, { headers: ['User-Agent: friendly-scanner'] })
  for (let guess = 0; guess < 20; guess++) {
    guesser.learn(await guesser.register())
    expect((await guesser.signOn()).status).toBe(401)
  }
  const heard = guesser.peer.inbox.length
  guesser.peer.request('REGISTER', guesser.leg)
  const key = await tollgate.createKey('--name', 'ops', '--scopes', '*')
  const ask = (method: string, path: string) =>
    fetch(`http://127.0.0.1:${tollgate.apiPort}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}` },
    })
  const bans = (await (await ask('GET', '/api/v1/guard/bans')).json()) as { data: unknown }
  expect(bans.data).toMatchObject([{ source: at, reason: 'password_guessing' }])
  const metrics = await vi.waitFor(async () => {
    const text = await (await ask('GET', '/metrics')).text()
    expect(text).toMatch(/^tollgate_guard_dropped_banned_total [1-9]\d*$/m)
    return text
  }, patienceMs)
  expect(guesser.peer.inbox).toHaveLength(heard)
  expect(metrics).toMatch(/^tollgate_guard_dropped_scanner_total 1$/m)
  expect(metrics).toMatch(/^tollgate_guard_bans 1$/m)
  expect((await ask('DELETE', `/api/v1/guard/bans/${at}`)).status).toBe(200)
  expect((await guesser.register()).status).toBe(401)
  expect(tollgate.log.filter((line) => line.includes('a source is banned'))).toHaveLength(1)
})
