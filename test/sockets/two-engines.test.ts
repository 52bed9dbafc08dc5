/**
 * Two whole engines on one database, as instances of one installation: a phone registers at the
 * one, with its password, and is called at the other. Real sockets; each instance has an address of
 * its own.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { seedFile } from '../../engine/commands/seed.ts'
import { readConfig } from '../../engine/config.ts'
import { createEngine } from '../../engine/create-engine.ts'
import type { CallRecord } from '../../schema/contracts/call-record.ts'
import type { Charging } from '../../schema/contracts/charging.ts'
import type { LocalStore } from '../../schema/storage/store.ts'
import { DigestPhone } from '../support/digest-phone.ts'
import { emptyStore } from '../support/empty-store.ts'
import { freePort } from '../support/free-port.ts'
import { sdp } from '../support/sip-peer.ts'
import { recordRoutes } from '../support/two-nodes.ts'
import { domain, passwordOf, twoPhones } from '../support/two-phones.ts'
import { eventually } from '../support/waiting.ts'

const addresses = { a: '127.0.0.2', b: '127.0.0.3' }
type Name = keyof typeof addresses

const schedule = (work: () => void, delayMs: number): (() => void) => {
  const stop = new AbortController()
  void pause(delayMs, undefined, { signal: stop.signal }).then(work, () => undefined)
  return () => stop.abort()
}

/** Where the others send to instance a, and from where it says that its own requests come. */
interface Told {
  readonly at?: string
  readonly from?: readonly string[]
}

async function startInstance(
  self: Name,
  store: LocalStore,
  ports: Record<Name, number>,
  { at = addresses.a, from = [] }: Told = {},
) {
  const hosts = self === 'a' ? new Set([addresses.a, at]) : [addresses.b]
  const listen = [...hosts].flatMap((host) => [
    `udp/${host}:${ports[self]}`,
    `tcp/${host}:${ports[self]}`,
  ])
  const records: CallRecord[] = []
  const asked: unknown[] = []
  const charging: Charging = {
    authorize: (request) => {
      asked.push(request)
      return Promise.resolve({ kind: 'denied', code: 'no_account', account: null })
    },
    extend: () => Promise.resolve({ kind: 'denied', code: 'limit' }),
    begun: () => undefined,
    answered: () => Promise.resolve(true),
    changed: () => undefined,
    resume: () => false,
    abandon: () => undefined,
    alive: () => [],
    running: () => undefined,
    report: (record, safe) => {
      records.push(record)
      safe?.()
      return Promise.resolve(undefined)
    },
  }
  const clocks = { now: Date.now, wallNow: Date.now, schedule }
  const engine = createEngine({
    config: readConfig({ SIP_LISTEN: listen.join(','), PROBE_INTERVAL_MS: '600000' }),
    instance: { name: self },
    installation: {
      self,
      key: Buffer.alloc(32, 1),
      instances: () =>
        (['a', 'b'] as const).map((name) => ({
          name,
          isAlive: true,
          heartbeatAt: 0,
          addresses: name === 'a' ? from : [],
          sipUri: `sip:${name === 'a' ? at : addresses.b}:${ports[name]}`,
        })),
    },
    store,
    charging,
    ...clocks,
    log: () => undefined,
    random: () => 0.5,
    randomBytes,
    newUuid: randomUUID,
    databaseId: 'shared',
    whyClosed: () => undefined,
  })
  await engine.load()
  await engine.start()
  onTestFinished(() => engine.stop())
  const advertised = { advertisedHost: addresses[self], advertisedPort: ports[self] }
  const listenerOf = (protocol: 'udp' | 'tcp') => ({
    protocol,
    address: addresses[self],
    port: ports[self],
    ...advertised,
  })
  return { engine, records, asked, listenerOf }
}

/** Phone 102 has registered at instance b, and instance a has read that. */
async function installation(protocol: 'udp' | 'tcp', told?: Told) {
  const store = emptyStore()
  onTestFinished(() => store.close())
  await seedFile(store, JSON.stringify(twoPhones), Date.now())
  const ports = { a: await freePort(), b: await freePort() }
  const a = await startInstance('a', store, ports, told)
  const b = await startInstance('b', store, ports, told)
  const phoneOf = async (user: string, instance: typeof a, by: 'udp' | 'tcp') => {
    const account = { user, domain, password: passwordOf(user) }
    const phone = await DigestPhone.open(instance.listenerOf(by), account)
    onTestFinished(() => phone.close())
    return phone
  }
  const called = await phoneOf('102', b, protocol)
  called.peer.contact = 'sip:102@10.0.0.5:5060'
  expect((await called.signOn()).status).toBe(200)
  await a.engine.registrar.catchUp()
  return { a, b, called, caller: await phoneOf('101', a, 'udp') }
}

test.each(['udp', 'tcp'] as const)(
  'a phone behind NAT by %s at one instance is called at the other, which alone has a record of it',
  async (protocol) => {
    const { a, b, called, caller } = await installation(protocol)
    const leg = await caller.call('102')
    const invite = await called.peer.next('INVITE')
    expect(invite.uri).toBe('sip:102@10.0.0.5:5060')
    const headers = recordRoutes(invite)
    called.peer.reply(invite, 200, { tag: 'b', body: sdp('answer'), headers })
    caller.peer.learn(leg, await caller.answerTo(leg))
    caller.peer.request('ACK', leg)
    await called.peer.next('ACK')
    expect([a.engine.calls.size, b.engine.calls.size]).toEqual([1, 0])
    const routes = invite.all('Record-Route')
    called.peer.request('BYE', { ...called.peer.calledLeg(invite, 'b'), routes })
    await called.peer.next('200 BYE')
    await caller.peer.next('BYE')
    await eventually(() => expect(a.records).toHaveLength(1))
    expect(a.records[0]).toMatchObject({ disposition: 'ANSWERED', calledNumber: '102' })
    expect([b.records, b.asked]).toEqual([[], []])
    expect(b.engine.telemetry()).toMatchObject({ flow_tokens_refused_total: 0 })
  },
)

test.each([
  ['and that has told it, is taken', [addresses.a], 'INVITE'],
  ['and has not told it, is refused', [], 'none'],
] as const)(
  'a request of an instance that comes from another address than its URI has, %s',
  async (_, from, expected) => {
    // The system sends from the first address, and the others reach the instance by the second.
    const { b, called, caller } = await installation('udp', { at: '127.0.0.4', from })
    const leg = await caller.call('102')
    if (expected === 'none') {
      expect((await caller.answerTo(leg)).status).toBe(403)
      expect(b.engine.telemetry()).toMatchObject({ flow_tokens_refused_total: 1 })
      return
    }
    const invite = await called.peer.next('INVITE')
    const headers = recordRoutes(invite)
    called.peer.reply(invite, 200, { tag: 'b', body: sdp('answer'), headers })
    caller.peer.learn(leg, await caller.answerTo(leg))
    caller.peer.request('ACK', leg)
    await called.peer.next('ACK')
    const routes = invite.all('Record-Route')
    called.peer.request('BYE', { ...called.peer.calledLeg(invite, 'b'), routes })
    await called.peer.next('200 BYE')
    await caller.peer.next('BYE')
  },
)
