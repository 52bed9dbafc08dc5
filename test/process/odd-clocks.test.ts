/**
 * Two instances of one PostgreSQL, on machines whose clocks are odd: one is ahead, or was asleep.
 */
import { resolve } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { cents, paying, seedFor } from '../sipp/call-case.ts'
import { DigestPhone } from '../support/digest-phone.ts'
import { freshDatabase, hasPostgres } from '../support/postgres.ts'
import { openPeer } from '../support/scripted-node.ts'
import { SipPeer, sdp } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { domain, passwordOf, twoPhones } from '../support/two-phones.ts'
import { eventually, patientInstances } from '../support/waiting.ts'

const SECRET_KEY = 'A'.repeat(43)
const NODE_OPTIONS = `--import=${resolve('test/support/odd-clock.mjs')}`

describe.runIf(hasPostgres)('instances whose clocks are odd', () => {
  const closers: (() => unknown)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close()
  }, 120_000)

  /** `sbc-1` has right clocks unless it has something of its own, and `sbc-2`. */
  async function start(seed: object, ...own: readonly Record<string, string>[]) {
    const { url, drop } = await freshDatabase()
    closers.push(drop)
    const instances: TollgateProcess[] = []
    for (const [index, each] of own.entries()) {
      const settings = { DATABASE_URL: url, SECRET_KEY, NODE_NAME: `sbc-${index + 1}`, ...each }
      const instance = await TollgateProcess.start(seed, {
        ...patientInstances,
        NODE_OPTIONS,
        ...settings,
      })
      closers.push(() => instance.stop())
      instances.push(instance)
    }
    const [one, two] = instances
    if (one === undefined || two === undefined) throw new Error('two instances are needed')
    return [one, two] as const
  }

  async function openCallee(): Promise<SipPeer> {
    const place = { address: '127.0.0.1', advertisedHost: '127.0.0.1', advertisedPort: 9 }
    const callee = await SipPeer.openPatient({ protocol: 'udp', port: 9, ...place })
    closers.push(() => callee.close())
    callee.always('OPTIONS', 200, { tag: 'probed' })
    return callee
  }

  const talk = async (tollgate: TollgateProcess, callee: SipPeer) => {
    const caller = await openPeer(tollgate)
    const plain = caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`)
    const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${paying}@`) }
    caller.request('INVITE', leg, { body: sdp('caller') })
    callee.reply(await callee.next('INVITE'), 200, { tag: leg.callId, body: sdp('callee') })
    caller.learn(leg, await caller.next('200 INVITE'))
    caller.request('ACK', leg)
    await callee.next('ACK')
    /** It is ended by the instance. */
    const cut = async (): Promise<void> => {
      caller.reply(await caller.next('BYE'), 200)
      callee.reply(await callee.next('BYE'), 200)
    }
    return { cut }
  }

  test('a machine that was asleep ends the calls whose grants have passed, and overdraws no wallet', async () => {
    const callee = await openCallee()
    // Six seconds of talk.
    const seed = seedFor([callee.port], { balance: '0.06' })
    const [sleeper, other] = await start(seed, { CLOCK_SLEEPS: 'yes' }, {})
    const call = await talk(sleeper, callee)
    sleeper.signal('SIGSTOP')
    closers.push(() => sleeper.signal('SIGCONT'))
    const stoppedAt = performance.now()
    other.change(
      "UPDATE node SET heartbeat_at = heartbeat_at - 200000 WHERE name = 'sbc-1' AND epoch = ?",
      1,
    )
    // The money that it held is free, and is spent elsewhere.
    await eventually(() =>
      expect(other.query("SELECT * FROM share WHERE node = 'sbc-1' AND kind = 'wallet'")).toEqual(
        [],
      ),
    )
    const elsewhere = await talk(other, callee)
    await elsewhere.cut()
    await other.waitForCalls(1)
    expect(other.wallet('paying')).toMatchObject({ balance: 0 })
    expect(performance.now() - stoppedAt).toBeGreaterThan(6_000)
    sleeper.signal('SIGCONT')
    await call.cut()
    const calls = await other.waitForCalls(2)
    expect(other.wallet('paying')).toMatchObject({ balance: 0, ledger: 0 })
    expect(calls.map(({ billsec }) => billsec <= 7)).toEqual([true, true])
    expect(calls.reduce((sum, record) => sum + record.cost_micros, 0)).toBe(cents(6))
  })

  test('clocks 90 s apart: phones of one call those of the other, sessions hold on both, nothing expires early, and the error is told', async () => {
    const [right, ahead] = await start(
      twoPhones,
      { TRUSTED_SOURCES: '192.0.2.0/24' },
      { TRUSTED_SOURCES: '192.0.2.0/24', CLOCK_AHEAD_MS: '90000' },
    )
    const register = async (tollgate: TollgateProcess, user: string): Promise<DigestPhone> => {
      const account = { user, domain, password: passwordOf(user) }
      const phone = await DigestPhone.open(tollgate.listener(), account)
      closers.push(() => phone.close())
      expect((await phone.signOn(['Expires: 60'])).status).toBe(200)
      return phone
    }
    const password = 'a long password 1'
    const admin = await right.createKey('--name', 'ops', '--scopes', '*')
    const ask = async (tollgate: TollgateProcess, path: string, key: string, body?: object) => {
      const response = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          'Content-Type': 'application/json',
          ...(key !== '' && { Authorization: `Bearer ${key}` }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const { data } = (await response.json()) as { readonly data?: unknown }
      return { status: response.status, data }
    }
    await eventually(async () => {
      const { data } = await ask(right, '/nodes', admin)
      expect(data).toMatchObject([
        { name: 'sbc-1', state: 'serving', clock_difference_seconds: 0 },
        {
          name: 'sbc-2',
          state: 'serving',
          clock_difference_seconds: expect.closeTo(90, 0) as number,
        },
      ])
    })

    const [one, two] = [await register(right, '101'), await register(ahead, '102')]
    for (const [caller, callee, number] of [
      [one, two, '102'],
      [two, one, '101'],
    ] as const) {
      // The other instance hears of the phone a moment later.
      const leg = await eventually(async () => {
        const asked = await caller.call(number)
        const isRinging = (): boolean => callee.peer.inbox.some(({ method }) => method === 'INVITE')
        const isRefused = (): boolean => caller.peer.inbox.some(({ status }) => status === 480)
        await eventually(() => expect(isRinging() || isRefused()).toBe(true))
        if (!isRinging()) caller.peer.request('ACK', asked)
        caller.peer.inbox.splice(0)
        expect(isRinging()).toBe(true)
        return asked
      }, 10_000)
      callee.peer.reply(await callee.peer.next('INVITE'), 486, { tag: 'busy' })
      expect((await caller.answerTo(leg)).status).toBe(486)
      caller.peer.request('ACK', leg)
    }
    // The one that is ahead has looked for expired bindings since, and removed none of the other.
    const bindings = ahead.query<{ contact: string }>('SELECT contact FROM binding')
    expect(bindings).toHaveLength(2)

    const user = { username: 'anna', password, role: 'admin' }
    expect((await ask(right, '/users', admin, user)).status).toBe(201)
    for (const [from, to] of [
      [right, ahead],
      [ahead, right],
    ] as const) {
      const login = await ask(from, '/auth/login', '', { username: 'anna', password })
      const { token } = login.data as { readonly token: string }
      expect((await ask(to, '/pbx/calls/active', token)).status).toBe(200)
    }
    expect(ahead.log.join()).toContain('the clock of this machine differs')
    expect(right.log.join()).not.toContain('the clock of this machine differs')
  })
})
